"""The experiments of the conformance runs: tiny, synthetic, the same for every adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tuneoff.base.identity import configuration_digest
from tuneoff.base.space import Categorical, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.spec import (
    Budget,
    ExperimentSpec,
    Failures,
    Objective,
    Strategy,
    Timeouts,
    Workers,
    WorkloadSpec,
)
from tuneoff.trust.check.probe_workload import ACTS, METRIC, Act, Probe, ProbeWithoutState

EPOCHS = 3
LEVELS = (0.4, 0.9, 0.2, 0.6, 0.1, 0.8, 0.5, 0.3)  # neither the best nor the worst is the first or the last
MEMORY_MB = 600.0
SILENCE_SECONDS, TRIAL_SECONDS = 4.0, 7.0
WALL_CLOCK_SECONDS = 4.0
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
FAULTS: tuple[Act, ...] = ("raise", "nan", "inf", "no-report", "hang", "slow", "exit", "kill", "memory")
CHOICES = (1, 1.0, True, "1")  # equal to many programs
CARELESS_ACTS: tuple[Act, ...] = ("sound", "sound", "raise-base", "sound", "text", "sound", "kill-self", "sound")


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


def listed(configurations: Sequence[tuple[float, Act]], **changes: Any) -> ExperimentSpec:
    """Return an experiment whose configurations (level, act) are given."""
    points = tuple({"level": level, "act": act} for level, act in configurations)
    return experiment(
        ProbeWithoutState,
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


def drawn(trials: int, *, state: bool = False, **changes: Any) -> ExperimentSpec:
    """Return an experiment with random search."""
    budget = Budget(trials=trials, epochs_per_trial=EPOCHS)
    return experiment(Probe if state else ProbeWithoutState, **{"budget": budget, **changes})


def with_state(workload: WorkloadSpec) -> WorkloadSpec:
    """Return the probe that leaves checkpoints."""
    target = f"{Probe.__module__}:{Probe.__qualname__}"
    return replace(workload, name=target, target=target)


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


def retried(retries: int) -> ExperimentSpec:
    """One process is killed once, one every time, and one trial raises."""
    configurations: list[tuple[float, Act]] = [(0.4, "sound"), (0.7, "kill-once"), (0.8, "kill"), (0.9, "raise"), (0.5, "sound")]
    return listed(configurations, failures=Failures(retries=retries))


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


def wall_clock() -> ExperimentSpec:
    """More trials than the seconds suffice for."""
    budget = Budget(trials=60, epochs_per_trial=EPOCHS, wall_clock_seconds=WALL_CLOCK_SECONDS)
    return drawn(60, options={"epoch_seconds": 0.3}, budget=budget)
