"""Which runs are made for the checks, what each needs of an adapter, and their experiments: tiny, synthetic, the same for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

from tuneoff.base.capabilities import LOCAL, Capabilities, Offer, Support, offered
from tuneoff.base.findings import Finding, not_applicable, out_of_reach
from tuneoff.base.identity import configuration_digest
from tuneoff.base.packages import missing_modules
from tuneoff.base.space import Categorical, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Objective, Strategy, Timeouts, Workers, WorkloadSpec
from tuneoff.experiment.strategies import sample_distinct
from tuneoff.trust.check.probe_workload import ACTS, METRIC, Act, Probe, ProbeWithoutState
from tuneoff.workload import Mode

EPOCHS = 3
LEVELS = (0.4, 0.9, 0.2, 0.6, 0.1, 0.8, 0.5, 0.3)  # neither the best nor the worst is the first or the last
MEMORY_MB = 600.0
SILENCE_SECONDS, TRIAL_SECONDS = 4.0, 7.0
WALL_CLOCK_SECONDS = 4.0
EARLY_ENDS_SECONDS = 90.0  # an adapter that waits for the planned epochs does not wait long
LIMITS = Timeouts(
    trial_seconds=60,
    silence_seconds=30,
    deploy_seconds=120,
    setup_seconds=60,
    trials_seconds=180,
    collect_seconds=30,
    test_seconds=60,
    metrics_seconds=30,
    undeploy_seconds=30,
)

LISTED = SearchSpace({"level": Float(low=0.0, high=1.0), "act": Categorical(choices=ACTS)})
RANDOM = SearchSpace(
    {
        "rate": Float(low=1e-4, high=1.0, log=True),
        "share": Float(low=-1.0, high=1.0),
        "width": IntegerLog(low=4, high=64),
        "depth": stepped(1, 3, 1, integer=True),
        "dropout": stepped(0.0, 0.5, 0.25, integer=False),
        "narrow": IntegerLog(low=1, high=3),
        "kind": Categorical(choices=("a", "b", "c")),
    }
)
NUMBERS = SearchSpace(  # every sampler can have it: numbers only, and a grid that ends
    {
        "width": stepped(4, 64, 4, integer=True),
        "depth": stepped(1, 3, 1, integer=True),
        "dropout": stepped(0.0, 0.5, 0.25, integer=False),
    }
)
GIVEN = 24  # first configurations: more than samplers draw before they use their model
PROPOSED = 12  # after them: more than SMAC3 plans at first
FIRST = ("first", "first-min")  # one seed, the same first configurations, maximized and minimized
GOALS: Mapping[Mode, float] = {"max": 0.85, "min": 0.15}  # LEVELS has one trial that meets it, long before the last one
FAULTS: tuple[Act, ...] = ("raise", "nan", "inf", "no-report", "hang", "slow", "exit", "kill", "memory")
CHOICES = (1, 1.0, True, "1")  # equal to many programs
CARELESS_ACTS: tuple[Act, ...] = ("sound", "sound", "raise-base", "sound", "text", "sound", "kill-self", "sound")
Outside = Literal["interrupt", "kill-coordinator"]  # what is done to a run from outside
DRAWS, REFUSALS = "draws", "refusals"  # evidence that is not a run
MANY = "random-many"  # in the place of draws, where an adapter cannot draw without running trials
DEVICES = (5, 3)  # not the numbers that slots have
REPETITIONS = 6  # of one seed; the second half under load
SEED, OTHER_SEED = 0, 1
MODES: tuple[Mode, ...] = ("max", "min")
AT_GOAL = ("goal", "goal-reported")


def without_list(spec: ExperimentSpec) -> ExperimentSpec:
    """Return an experiment of `listed` for a framework that draws configurations itself: a script says what each trial does."""
    script = [[configuration["level"], configuration["act"]] for configuration in spec.configurations]
    return replace(
        spec,
        workload=replace(spec.workload, options={**spec.workload.options, "script": script}),
        search_space=SearchSpace({name: dimension for name, dimension in spec.search_space if name != "act"}),
        sampler=Strategy(name="random"),
        configurations=(),
    )


def listed(configurations: Sequence[tuple[float, Act]], *, state: bool = False, **changes: Any) -> ExperimentSpec:
    """Return an experiment whose configurations (level, act) are given."""
    points = tuple({"level": level, "act": act} for level, act in configurations)
    return experiment(
        Probe if state else ProbeWithoutState,
        **{
            "search_space": LISTED,
            "sampler": Strategy(name="fixed"),
            "configurations": points,
            "budget": Budget(trials=len(points), epochs_per_trial=EPOCHS),
            **changes,
        },
    )


def sound(count: int) -> list[tuple[float, Act]]:
    """Return `count` configurations without a fault, of different levels."""
    return [(LEVELS[index % len(LEVELS)] + index // len(LEVELS) / 1000, "sound") for index in range(count)]


def random_search(trials: int, *, state: bool = False, **changes: Any) -> ExperimentSpec:
    """Return an experiment with random search."""
    budget = Budget(trials=trials, epochs_per_trial=EPOCHS)
    return experiment(Probe if state else ProbeWithoutState, **{"budget": budget, **changes})


def experiment(workload: type[Probe], *, options: dict[str, Any] | None = None, **changes: Any) -> ExperimentSpec:
    """Return a small experiment on the probe; `options` are the workload's."""
    target = f"{workload.__module__}:{workload.__qualname__}"
    defaults: dict[str, Any] = {
        "workload": WorkloadSpec(name=target, target=target, options=options or {}),
        "search_space": RANDOM,
        "objective": Objective(metric=METRIC, mode="max"),
        "sampler": Strategy(name="random"),
        "pruner": Strategy(name="none"),
        "budget": Budget(trials=8, epochs_per_trial=EPOCHS),
        "workers": Workers(count=2),
        "timeouts": LIMITS,
        "failures": Failures(),
    }
    return ExperimentSpec(**{**defaults, **changes})


def scripted() -> ExperimentSpec:
    """Two of six trials have to stop, the best of all among them."""
    configurations = [(0.4, "sound"), (0.9, "sound"), (0.6, "sound"), (0.2, "sound"), (0.5, "sound"), (0.3, "sound")]
    spec = listed(configurations, options={"epoch_seconds": 0.25})  # type: ignore[arg-type]
    points = spec.configurations
    stops = {configuration_digest(points[index]): epoch for index, epoch in ((1, 2), (4, 3))}
    return replace(spec, pruner=Strategy(name="scripted"), stops=stops, budget=Budget(trials=6, epochs_per_trial=6))


def faulty() -> ExperimentSpec:
    """One trial of each fault, and sound ones between them."""
    configurations: list[tuple[float, Act]] = []
    for index, act in enumerate(FAULTS):
        configurations.append((0.95 - index / 100, act))
        if index % 2:
            configurations.append((0.3 + index / 100, "sound"))
    return listed(
        configurations,
        workers=Workers(count=2, memory_mb=MEMORY_MB),
        timeouts=replace(LIMITS, trial_seconds=TRIAL_SECONDS, silence_seconds=SILENCE_SECONDS),
    )


CARELESS = SearchSpace(
    {
        **LISTED.dimensions,
        "choice": Categorical(choices=CHOICES),
        "layers": Categorical(choices=([4], [4, 8])),
    }
)


def careless() -> ExperimentSpec:
    """Every training changes its process and its configuration; some end in ways that careless ones have."""
    levels = [level for level, _ in sound(len(CARELESS_ACTS))]
    spec = listed(list(zip(levels, CARELESS_ACTS, strict=True)), options={"is_careless": True}, search_space=CARELESS)
    points = tuple(
        {**configuration, "choice": CHOICES[index % len(CHOICES)], "layers": [4, 8]}
        for index, configuration in enumerate(spec.configurations)
    )
    return replace(spec, configurations=points)


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One run: its experiment, and what is special about it."""

    name: str
    experiment: ExperimentSpec
    _: KW_ONLY
    reports: Literal["every_epoch"] | None = None  # None: what the framework needs
    seed: int = SEED
    plant: str | None = None  # see `fault_injection`
    act: Outside | None = None
    is_loaded: bool = False  # beside processes that keep every processor busy
    without_groups: bool = False  # as on a machine where no control group can be made
    is_alone: bool = False  # no other run beside it: its times matter

    def absence(self, capabilities: Capabilities, platform: str = LOCAL) -> Finding | None:
        """Return why an adapter with these capabilities cannot make the run on a platform, or None.

        It is out of reach, and not without a matter, where the framework does what is checked, but offers nothing to show it by.
        """
        spec = self.experiment
        if (reason := not_offered("pruner", spec.pruner.name, capabilities.pruners)) is not None:
            stops = offered(capabilities.pruners).keys() - {"none"}
            return out_of_reach(reason) if stops else not_applicable(reason)
        if (reason := not_offered("sampler", spec.sampler.name, capabilities.samplers)) is not None:
            return not_applicable(reason) if spec.sampler.name == "default" else out_of_reach(reason)
        if self.name in FIRST and not capabilities.first_configurations:
            return not_applicable("first configurations are not offered")
        if spec.workers.devices and platform != LOCAL:
            return not_applicable(f"trials on platform {platform} are given no devices")
        if self.without_groups and capabilities.memory_limiter:
            return not_applicable(f"memory is limited by: {capabilities.memory_limiter}")
        return None


def not_offered(kind: str, name: str, offers: Mapping[str, Offer]) -> str | None:
    """Return by whom a sampler or pruner is not offered, or None."""
    if name in offered(offers):
        return None
    return f"{kind} {name!r} is not offered ({offers[name].support.value if name in offers else 'not listed'})"


def repetitions(workers: int) -> tuple[str, ...]:
    """Return the names of the repetitions of one seed with so many workers."""
    return tuple(f"random-{workers}-workers-{number}" for number in range(1, REPETITIONS + 1))


def planned_runs(capabilities: Capabilities) -> dict[str, CheckRun]:
    """Return all runs by name, the longest first; each check names those that it reads."""
    retries = int(capabilities.retry is Support.YES)
    has_fixed = "fixed" in offered(capabilities.samplers)

    def honest(**changes: Any) -> ExperimentSpec:
        return listed(sound(8), **changes) if has_fixed else random_search(8, **changes)

    few, long = random_search(3, state=True), random_search(16, options={"epoch_seconds": 0.5})
    out_of_memory = listed([(0.9, "memory"), *sound(2)], workers=Workers(count=2, memory_mb=MEMORY_MB))
    early = random_search(6, options={"ends_early": True}, timeouts=replace(LIMITS, trials_seconds=EARLY_ENDS_SECONDS))
    killed: list[tuple[float, Act]] = [(0.4, "sound"), (0.7, "kill-once"), (0.8, "kill"), (0.9, "raise"), (0.5, "sound")]
    failures, on_devices = Failures(retries=retries), Workers(count=2, devices=DEVICES)
    too_many = Budget(trials=60, epochs_per_trial=EPOCHS, wall_clock_seconds=WALL_CLOCK_SECONDS)
    random = random_search(8)
    alone = replace(random, workers=Workers(count=1))
    acting = (lambda spec: spec) if has_fixed else without_list
    runs = [
        CheckRun("faulty", acting(faulty())),
        CheckRun("without-groups", acting(out_of_memory), without_groups=True),
        CheckRun("scripted", scripted()),
        CheckRun("default-sampler", replace(random_search(16), sampler=Strategy(name="default"))),
        CheckRun("failed-trial", long, plant="trial"),
        CheckRun("coordinator-killed", long, act="kill-coordinator"),
        *(
            CheckRun(name, experiment, is_loaded=number >= REPETITIONS // 2)
            for experiment in (random, alone)
            for number, name in enumerate(repetitions(experiment.workers.count))
        ),
        CheckRun("other-seed", alone, seed=OTHER_SEED),
        # Each epoch computes for a moment, so that its threads are seen, and leaves a checkpoint.
        CheckRun("honest-max", honest(state=True, options={"compute_seconds": 0.03})),
        CheckRun(
            "honest-min",
            honest(objective=Objective(metric=METRIC, mode="min")),
            # Drawn trials of one seed may end with their worst in both runs: the last one named looks like a wrong direction.
            seed=SEED if has_fixed else OTHER_SEED,
            reports="every_epoch",  # under both what the framework names has to be the best
        ),
        CheckRun("odd-values", acting(listed(_ODD, options={"noise": 0.0}))),
        CheckRun("early-ends", early),
        CheckRun("careless", acting(careless())),
        CheckRun("retried", acting(listed(killed, failures=failures))),
        CheckRun("devices", acting(listed(killed, failures=failures, workers=on_devices, options={"epoch_seconds": 0.1}))),
        *(CheckRun(f"failed-{step}", few, plant=step) for step in ("deploy", "setup", "collect", "test", "metrics", "undeploy")),
        CheckRun("undeployed-twice", few, plant="twice"),
        *(CheckRun(name, _first(capabilities, mode)) for name, mode in zip(FIRST, MODES, strict=True)),
        CheckRun("goal", acting(_stopping("max"))),
        CheckRun("goal-reported", acting(_stopping("min")), reports="every_epoch"),  # met before its trial ends
        CheckRun(MANY, replace(random_search(150), budget=Budget(trials=150, epochs_per_trial=1))),
        CheckRun("interrupted", honest(options={"epoch_seconds": 0.3}), act="interrupt", is_alone=True),
        CheckRun("wall-clock", random_search(60, options={"epoch_seconds": 0.3}, budget=too_many), is_alone=True),
    ]
    return {run.name: run for run in runs}


def _first(capabilities: Capabilities, mode: Mode) -> ExperimentSpec:
    """Return an experiment that tries given configurations first, the sampler with a model if there is one."""
    samplers = offered(capabilities.samplers)
    has_model = [name for name in ("default", "tpe") if name in samplers and samplers[name].same_as != "random"]
    name = next((name for name in has_model if not missing_modules(samplers[name].needs)), "random")
    space = Probe.default_space()
    return random_search(
        GIVEN + PROPOSED,
        search_space=space,
        sampler=Strategy(name=name),
        workers=Workers(count=1),
        objective=Objective(metric=METRIC, mode=mode),
        configurations=tuple(sample_distinct(space, GIVEN, seed=SEED)),
    )


def _stopping(mode: Mode) -> ExperimentSpec:
    """Return an experiment that ends at its goal, which the second or the fifth of its trials meets."""
    objective = Objective(metric=METRIC, mode=mode, goal=GOALS[mode], stop=True)
    return listed(sound(2 * len(LEVELS)), state=True, objective=objective, options={"epoch_seconds": 0.15})


_ODD: list[tuple[float, Act]] = [
    (0.3, "sound"),
    (0.9, "nan"),
    (0.7, "sound"),
    (0.1, "inf"),
    (0.2, "sound"),
    (0.7, "calm"),
]
