"""Which runs are made for the checks, and what each needs of an adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from tuneoff.base.findings import Finding, not_applicable, out_of_reach
from tuneoff.capabilities import Capabilities, Offer, Support, offered
from tuneoff.experiment.spec import Budget, ExperimentSpec, Strategy, Workers
from tuneoff.trust.check import specs
from tuneoff.trust.check.fault_injection import Plant
from tuneoff.trust.check.probe_workload import Act

Outside = Literal["interrupt", "kill-coordinator"]  # what is done to a run from outside
DRAWS, REFUSALS = "draws", "refusals"  # evidence that is not a run
MANY = "random-many"  # in the place of draws, where an adapter cannot draw without running trials
REPETITIONS = 6  # of one seed; the second half under load
SEED, OTHER_SEED = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One run: its experiment, and what is special about it."""

    name: str
    experiment: ExperimentSpec
    reports: Literal["every_epoch"] | None = None  # None: what the framework needs
    seed: int = SEED
    plant: Plant | None = None
    act: Outside | None = None
    is_loaded: bool = False  # beside processes that keep every processor busy
    without_groups: bool = False  # as on a machine where no control group can be made
    is_alone: bool = False  # no other run beside it: its times matter

    def absence(self, capabilities: Capabilities) -> Finding | None:
        """Return why an adapter with these capabilities cannot make the run, or None.

        It is out of reach, and not without a matter, where the framework does what is checked, but offers nothing to show it by.
        """
        spec = self.experiment
        if (reason := not_offered("pruner", spec.pruner.name, capabilities.pruners)) is not None:
            stops = offered(capabilities.pruners).keys() - {"none"}
            return out_of_reach(reason) if stops else not_applicable(reason)
        if (reason := not_offered("sampler", spec.sampler.name, capabilities.samplers)) is not None:
            return not_applicable(reason) if spec.sampler.name == "default" else out_of_reach(reason)
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
    honest = specs.listed(specs.sound(8)) if has_fixed else specs.drawn(8)
    few, long = specs.drawn(3, state=True), specs.drawn(16, options={"epoch_seconds": 0.5})
    interrupted = _with_options(honest, epoch_seconds=0.3)
    # Each epoch computes for a moment, so that its threads are seen, and leaves a checkpoint.
    computing = _with_options(replace(honest, workload=specs.with_state(honest.workload)), compute_seconds=0.03)
    limited_memory = Workers(count=2, memory_mb=specs.MEMORY_MB)
    out_of_memory = specs.listed([(0.9, "memory"), *specs.sound(2)], workers=limited_memory)
    # An adapter that waits for the planned epochs does not wait long.
    early = specs.drawn(6, options={"ends_early": True}, timeouts=replace(specs.LIMITS, trials_seconds=90))
    random = specs.drawn(8)
    alone = replace(random, workers=Workers(count=1))
    acting = (lambda spec: spec) if has_fixed else specs.without_list
    runs = [
        CheckRun(name="faulty", experiment=acting(specs.faulty())),
        CheckRun(name="without-groups", experiment=acting(out_of_memory), without_groups=True),
        CheckRun(name="scripted", experiment=specs.scripted()),
        CheckRun(name="default-sampler", experiment=replace(specs.drawn(16), sampler=Strategy(name="default"))),
        CheckRun(name="failed-trial", experiment=long, plant="trial"),
        CheckRun(name="coordinator-killed", experiment=long, act="kill-coordinator"),
        *(
            CheckRun(name=name, experiment=experiment, is_loaded=number >= REPETITIONS // 2)
            for experiment in (random, alone)
            for number, name in enumerate(repetitions(experiment.workers.count))
        ),
        CheckRun(name="other-seed", experiment=alone, seed=OTHER_SEED),
        CheckRun(name="honest-max", experiment=computing),
        CheckRun(
            name="honest-min",
            experiment=replace(honest, objective=replace(honest.objective, mode="min")),
            # Drawn trials of one seed may end with their worst in both runs: the last one named looks like a wrong direction.
            seed=SEED if has_fixed else OTHER_SEED,
            reports="every_epoch",  # under both what the framework names has to be the best
        ),
        CheckRun(name="odd-values", experiment=acting(specs.listed(_ODD, options={"noise": 0.0}))),
        CheckRun(name="early-ends", experiment=early),
        CheckRun(name="careless", experiment=acting(specs.careless())),
        CheckRun(name="retried", experiment=acting(specs.retried(retries))),
        *(
            CheckRun(name=f"failed-{step}", experiment=few, plant=step)
            for step in ("deploy", "setup", "collect", "test", "metrics", "undeploy")
        ),
        CheckRun(name="undeployed-twice", experiment=few, plant="twice"),
        CheckRun(name=MANY, experiment=replace(specs.drawn(150), budget=Budget(trials=150, epochs_per_trial=1))),
        CheckRun(name="interrupted", experiment=interrupted, act="interrupt", is_alone=True),
        CheckRun(name="wall-clock", experiment=specs.wall_clock(), is_alone=True),
    ]
    return {run.name: run for run in runs}


_ODD: list[tuple[float, Act]] = [
    (0.3, "sound"),
    (0.9, "nan"),
    (0.7, "sound"),
    (0.1, "inf"),
    (0.2, "sound"),
    (0.7, "calm"),
]


def _with_options(spec: ExperimentSpec, **options: float) -> ExperimentSpec:
    return replace(spec, workload=replace(spec.workload, options={**spec.workload.options, **options}))
