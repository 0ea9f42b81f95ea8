"""What is verified: each adapter of a file with each search space of it, the narrow probes added, random search, no work."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tuneoff import registry
from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Categorical, Dimension, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.names import variant_text
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import Budget, Failures, Objective, Strategy, WorkloadSpec

PREFIX = "probe_"

PROBES: dict[str, Dimension] = {
    "two": stepped(0, 1, 1, integer=True),
    "ten": stepped(0, 9, 1, integer=True),
    "tens": stepped(-20, 20, 10, integer=True),
    "quarters": stepped(0.0, 1.0, 0.25, integer=False),
    "log_ten": IntegerLog(low=1, high=10),
    "switch": Categorical(choices=(False, True)),
    "choice": Categorical(choices=("a", "b", None, 0.5, [64, 32], {"deep": 1}, "g")),
    "rank": Categorical(choices=("xs", "s", "m", "l"), ordered=True),
    "float": Float(low=-1.0, high=3.0),
    "rate": Float(low=1e-5, high=1e-1, log=True),
}
WORKLOAD, SAMPLER, PRUNER = "null", "random", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTarget:
    """One adapter with one search space. `run` has the spec to draw from and the reason where that cannot be done.

    `file_dimensions`: names of the file's dimensions; `unprobed`: why the narrow probes are left out, "" where they are not.
    """

    run: PlannedRun
    label: str
    variant: str  # the values by which the file's search spaces differ; "" where it has one
    file_dimensions: frozenset[str]
    unprobed: str = ""

    @property
    def title(self) -> str:
        """The adapter's label, and the variant where there are several."""
        return f"{self.label} {self.variant}".rstrip()

    @property
    def space(self) -> SearchSpace:
        return self.run.spec.experiment.search_space


def targets(plan: Plan, draws: int) -> list[SpaceTarget]:
    """Return what a plan asks to verify, each adapter entry and search space once, in the plan's order."""
    check = SkipCheck()
    labels = plan.label_texts
    several = len({_text(run.spec.experiment.search_space) for run in plan.counted}) > 1
    by_key: dict[str, SpaceTarget] = {}
    for run in plan.counted:
        spec = run.spec
        key = canonical_json([spec.adapter, spec.platform, dict(spec.options), _text(spec.experiment.search_space)])
        if key not in by_key:
            values = spec.experiment.variant if several else {}
            of_space = {name: value for name, value in values.items() if name.partition(".")[0] == "search_space"}
            variant = variant_text(of_space or values)  # all, where the space is another one because of something else
            by_key[key] = _target(run, labels[run.label], variant, draws, check)
    return list(by_key.values())


def _target(run: PlannedRun, label: str, variant: str, draws: int, check: SkipCheck) -> SpaceTarget:
    file_space = run.spec.experiment.search_space
    adapter = registry.adapter_class(run.spec.adapter)
    workload = registry.workload_class(WORKLOAD)
    metric = workload.default_metric
    experiment = replace(
        run.spec.experiment,
        workload=WorkloadSpec(name=WORKLOAD, target=registry.find("workload", WORKLOAD).target),
        objective=Objective(metric=metric, mode=workload.metrics[metric]),
        sampler=Strategy(name=SAMPLER),
        pruner=Strategy(name=PRUNER),
        budget=Budget(trials=draws, epochs_per_trial=1),
        workers=replace(run.spec.experiment.workers, cpus=1.0, memory_mb=None),
        failures=Failures(),
        configurations=(),
        stops={},
    )
    reasons: list[str | None] = []
    for space in (with_probes(file_space), file_space):
        spec = replace(run.spec, replicate=0, experiment=replace(experiment, search_space=space))
        reasons.append(check.reason(spec, adapter))
        planned = replace(run, run_id=spec.run_id, spec=spec, skip_reason=reasons[-1], same_as=None, block=0)
        if reasons[-1] is None:
            break
    unprobed = "" if len(reasons) == 1 else f"without the narrow probes: {reasons[0]}"
    return SpaceTarget(
        run=planned, label=label, variant=variant, file_dimensions=frozenset(file_space.dimensions), unprobed=unprobed
    )


def _text(space: SearchSpace) -> str:
    return canonical_json(space.to_json())


def with_probes(space: SearchSpace) -> SearchSpace:
    """Return the space with the probes behind its own dimensions, under names that it does not use."""
    prefix = PREFIX
    while any(f"{prefix}{name}" in space.dimensions for name in PROBES):
        prefix = f"_{prefix}"
    return SearchSpace({**space.dimensions, **{f"{prefix}{name}": dimension for name, dimension in PROBES.items()}})
