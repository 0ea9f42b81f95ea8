"""The runs of a results folder: every planned one with how it ended, grouped by scope and adapter entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tuneoff.base.identity import canonical_json
from tuneoff.experiment.names import emulated_label, label_texts, strategy_text, variant_text
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.variants import TASK
from tuneoff.judge.results import Results
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.run.run_ends import Without, came_out

POOL = "serial"  # the adapter that uses no framework: what the others are held to
EMULATED = "emulated, so in no comparison"
ENDED = ("done", *FAILED)
NOT_BEGUN = "not run yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What compared runs share. `text` names it in tables: `random`, `tpe + asha digits-300-small`."""

    sampler: str
    pruner: str
    variant: str
    task: str  # "": the file has no tasks
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A planned run of a group. `record`: the execution that stands for it, of a run that is another's the other's."""

    run_id: str
    spec: RunSpec
    record: RunRecord | None
    status: str  # done, failed, timeout, interrupted, skipped, running, planned
    reason: str | None = None
    will_run: bool = True  # False: skipped, and no other run stands for it
    is_added: bool = False  # its seed was added after the folder's first run: no verdict rests on it

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def execution_id(self) -> str | None:
        """The execution that stands for it; None: it was never started."""
        return self.record.execution_id if self.record is not None else None

    @property
    def is_skipped(self) -> bool:
        return self.status == "skipped"

    @property
    def is_failure(self) -> bool:
        """Whether it counts as worse than any success: it was tried itself, and came to nothing."""
        return self.status in FAILED

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its own flags."""
        own = self.record.flags if self.record is not None and not self.is_skipped else ()
        return tuple(dict.fromkeys(flag.name for flag in own))

    @property
    def has_ended(self) -> bool:
        """Whether it was tried to its end: an interrupted run is to be run again."""
        return self.record is not None and self.record.status in ENDED

    @property
    def is_done(self) -> bool:
        return self.record is not None and self.record.status == "done"

    @property
    def has_failed(self) -> bool:
        return self.record is not None and self.record.status in FAILED

    def metric(self, name: str) -> MetricValue | None:
        """Return a metric of its record as it stands there; what counts of it is `run_values.value`."""
        return None if self.record is None else self.record.metrics.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The runs of one adapter entry in one scope, in the order of the plan's seeds.

    `entry` is what equal entries share: `serial` and `serial#2`. `twins`: the scopes whose runs stand for all of these.
    """

    label: str
    entry: str
    scope: Scope
    spec: RunSpec  # of one of the runs
    runs: tuple[Run, ...]
    emulated: bool = False
    twins: tuple[Scope, ...] = ()

    @property
    def adapter(self) -> str:
        return self.spec.adapter

    @property
    def start(self) -> object:
        """How its workers start, as its option says: forked from a server; None: each a fresh interpreter."""
        return self.spec.options.get("start")

    @property
    def replicate(self) -> int:
        """Above 0: the same entry again, for the noise floor."""
        return self.spec.replicate

    @property
    def same_as(self) -> str | None:
        """The scope whose runs stand for all of these; None where they have their own."""
        return " and ".join(sorted({scope.text for scope in self.twins})) or None

    @property
    def by_seed(self) -> Mapping[int, Run]:
        """The runs that verdicts may rest on."""
        return {run.seed: run for run in self.runs if run.will_run and not run.is_added}

    @property
    def own(self) -> tuple[Run, ...]:
        """The runs that are not skipped."""
        return tuple(run for run in self.runs if not run.is_skipped)

    @property
    def done(self) -> Mapping[int, RunRecord]:
        """The records of its own runs that are done, by seed."""
        return {run.seed: run.record for run in self.own if run.record is not None and run.is_done}

    @property
    def not_done(self) -> Mapping[int, str]:
        """How its own runs that are not done ended, by seed; "planned": not run yet."""
        return {run.seed: run.status for run in self.own if not run.is_done}

    @property
    def is_compared(self) -> bool:
        """Whether it is in verdicts at all: on a real platform, and with something that runs or stands for it."""
        return not self.emulated and any(run.will_run for run in self.runs)


def grouped(results: Results) -> list[Group]:
    """Return the groups of a folder, scope by scope, each in the plan's order; warm-ups are in none."""
    texts = label_texts((run.label, run.spec.adapter) for run in results.planned)
    scopes: dict[str, Scope] = {}
    scope_of: dict[str, Scope] = {}  # by run id
    planned: dict[Scope, dict[str, list[PlannedRun]]] = {}
    for run in results.planned:
        key = run.spec.scope_key()
        if key not in scopes:
            scopes[key] = _scope(run.spec, {scope.text for scope in scopes.values()})
        scope_of[run.run_id] = scopes[key]
        planned.setdefault(scopes[key], {}).setdefault(run.label, []).append(run)
    return [
        _group(runs, scope, texts[label], results, scope_of)
        for scope, by_label in planned.items()
        for label, runs in by_label.items()
    ]


def by_scope(groups: Iterable[Group]) -> dict[Scope, list[Group]]:
    """Return groups by their scope, both in the order given."""
    found: dict[Scope, list[Group]] = {}
    for group in groups:
        found.setdefault(group.scope, []).append(group)
    return found


def noise_pairs(groups: Iterable[Group]) -> list[tuple[Group, Group]]:
    """Return (an entry again, its first) of a scope's groups: A/A, whose difference is chance."""
    compared = [group for group in groups if group.is_compared]
    firsts = {group.entry: group for group in compared if group.spec.replicate == 0}
    return [(group, firsts[group.entry]) for group in compared if group.spec.replicate and group.entry in firsts]


def _group(planned: Sequence[PlannedRun], scope: Scope, label: str, results: Results, scope_of: Mapping[str, Scope]) -> Group:
    runs = tuple(run_of(run, results.standing, results.without_record, results.plan.added_seeds) for run in planned)
    emulated = any(
        one.emulated or (run.record is not None and run.record.emulated) for one, run in zip(planned, runs, strict=True)
    )
    twins = [run.same_as for run in planned if run.same_as is not None]
    spec = planned[0].spec
    return Group(
        label=emulated_label(label, spec) if emulated else label,
        entry=_entry(spec),
        scope=scope,
        spec=spec,
        runs=runs,
        emulated=emulated,
        twins=tuple(dict.fromkeys(scope_of[twin] for twin in twins if twin in scope_of)) if len(twins) == len(planned) else (),
    )


def run_of(run: PlannedRun, standing: Mapping[str, RunRecord], without_record: Without, added_seeds: Collection[int] = ()) -> Run:
    """Return a planned run with the record that stands for it, or how it ended without one."""
    record = standing.get(run.run_id if run.same_as is None else run.same_as)
    status, reason = came_out(run, record, without_record)
    will_run = run.skip_reason is None or run.same_as is not None
    return Run(
        run_id=run.run_id,
        spec=run.spec,
        record=record if will_run else None,
        status=status,
        reason=NOT_BEGUN if (status, reason) == ("planned", None) else reason,
        will_run=will_run,
        is_added=run.spec.seed in added_seeds,
    )


def _scope(spec: RunSpec, taken: set[str]) -> Scope:
    experiment = spec.experiment
    variant = variant_text({key: value for key, value in experiment.variant.items() if key != TASK})
    named = experiment.variant.get(TASK)
    task = named if isinstance(named, str) else ""
    plain = " ".join(part for part in (strategy_text(experiment), variant, task) if part)
    text, number = plain, 1
    while text in taken:  # options that are in no variant text
        number += 1
        text = f"{plain} ({number})"
    return Scope(sampler=experiment.sampler.name, pruner=experiment.pruner.name, variant=variant, task=task, text=text)


def _entry(spec: RunSpec) -> str:
    options = {name: value for name, value in spec.options.items() if name not in spec.local_options}
    return canonical_json([spec.adapter, spec.platform, options])
