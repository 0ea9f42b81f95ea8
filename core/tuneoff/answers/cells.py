"""The runs of a folder by scope and adapter entry, every planned one with what it came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tuneoff.answers.model import RunRef, Scope
from tuneoff.answers.results import Results
from tuneoff.experiment.identity import canonical_json
from tuneoff.experiment.names import emulated_label, label_texts, strategy_text, variant_text
from tuneoff.experiment.spec import RunSpec
from tuneoff.matrix.plan import PlannedRun
from tuneoff.records.model import RunRecord
from tuneoff.records.store import RUNS

TASK = "task"  # in a run's variant, where the file has tasks
ENDED = ("done", "failed", "timeout")
FAILED = ("failed", "timeout")
BEGUN = "it was begun and has no record: it runs, or its command was killed"
NOT_BEGUN = "not run yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A planned run of a cell. `record`: the execution that stands for it, of a run that is another's the other's."""

    ref: RunRef
    record: RunRecord | None
    will_run: bool  # False: skipped, and no other run stands for it

    @property
    def seed(self) -> int:
        return self.ref.seed

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


@dataclass(slots=True, kw_only=True)
class Cell:
    """The runs of one adapter entry in one scope, in the order of the plan's seeds.

    `entry` is what equal entries share: `serial` and `serial#2`. `same_as`: the scope whose runs stand for all of these.
    """

    label: str
    entry: str
    scope: Scope
    spec: RunSpec  # of one of the runs
    emulated: bool = False
    same_as: str | None = None
    runs: list[Run] = field(default_factory=list)

    @property
    def by_seed(self) -> Mapping[int, Run]:
        return {run.seed: run for run in self.runs if run.will_run}

    @property
    def is_compared(self) -> bool:
        """Whether it is in verdicts at all: on a real platform, and with something that runs or stands for it."""
        return not self.emulated and any(run.will_run for run in self.runs)


class Matrix:
    """All cells of a folder, by scope, in the file's order."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._planned = {run.run_id: run for run in results.planned}
        self._texts = label_texts((run.label, run.spec.adapter) for run in results.planned)
        self._scopes: dict[str, Scope] = {}
        self._by_key: dict[tuple[str, str], Cell] = {}
        for run in results.planned:
            self._add(run)
        self._name_twins()

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(self._scopes.values())

    @cached_property
    def by_scope(self) -> Mapping[Scope, Sequence[Cell]]:
        found: dict[Scope, list[Cell]] = {scope: [] for scope in self.scopes}
        for cell in self._by_key.values():
            found[cell.scope].append(cell)
        return found

    @property
    def cells(self) -> list[Cell]:
        return [cell for cells in self.by_scope.values() for cell in cells]

    def _add(self, run: PlannedRun) -> None:
        key = scope_key(run.spec)
        if key not in self._scopes:
            self._scopes[key] = _scope(run.spec, {scope.text for scope in self._scopes.values()})
        cell = self._by_key.get((key, run.label))
        if cell is None:
            cell = Cell(label=self._texts[run.label], entry=_entry(run.spec), scope=self._scopes[key], spec=run.spec)
            self._by_key[key, run.label] = cell
        made = self._run(run)
        cell.runs.append(made)
        if not cell.emulated and (run.emulated or (made.record is not None and made.record.emulated)):
            cell.emulated, cell.label = True, emulated_label(cell.label, run.spec)

    def _run(self, run: PlannedRun) -> Run:
        record = self._results.standing.get(run.same_as if run.same_as is not None else run.run_id)
        execution = record.execution_id if record is not None else None
        if run.skip_reason is not None:
            ref = RunRef(seed=run.spec.seed, run_id=run.run_id, execution_id=execution, status="skipped", reason=run.skip_reason)
            return Run(ref=ref, record=record if run.same_as is not None else None, will_run=run.same_as is not None)
        if record is None:
            begun = (self._results.folder / RUNS / run.run_id).is_dir()
            reason = BEGUN if begun else NOT_BEGUN
            ref = RunRef(seed=run.spec.seed, run_id=run.run_id, execution_id=None, status="planned", reason=reason)
        else:
            ref = RunRef(
                seed=run.spec.seed,
                run_id=run.run_id,
                execution_id=execution,
                status=record.status,
                reason=record.reason,
                is_continued=record.continues is not None,
                flags=tuple(dict.fromkeys(flag.name for flag in record.flags)),
            )
        return Run(ref=ref, record=record, will_run=True)

    def _name_twins(self) -> None:
        """Say of a cell whose runs are all another cell's which one that is."""
        for cell in self._by_key.values():
            twins = {self._planned[run.ref.run_id].same_as for run in cell.runs}
            if None in twins:
                continue
            scopes = {self._scopes[scope_key(self._planned[twin].spec)].text for twin in twins if twin in self._planned}
            cell.same_as = " and ".join(sorted(scopes)) or None


def scope_key(spec: RunSpec) -> str:
    """Return what runs of one scope share: sampler and pruner with their options, and the values of the variant."""
    experiment = spec.experiment
    strategies = [[one.name, dict(one.options)] for one in (experiment.sampler, experiment.pruner)]
    return canonical_json([strategies, _variant(spec), task_of(spec)])


def task_of(spec: RunSpec) -> str:
    """Return the name of a run's task, "" in a file without tasks."""
    task = spec.experiment.variant.get(TASK)
    return task if isinstance(task, str) else ""


def _scope(spec: RunSpec, taken: set[str]) -> Scope:
    experiment = spec.experiment
    variant = variant_text({key: value for key, value in experiment.variant.items() if key != TASK})
    task = task_of(spec)
    plain = " ".join(part for part in (strategy_text(experiment), variant, task) if part)
    text, number = plain, 1
    while text in taken:  # options that are in no variant text
        number += 1
        text = f"{plain} ({number})"
    return Scope(sampler=experiment.sampler.name, pruner=experiment.pruner.name, variant=variant, task=task, text=text)


def _variant(spec: RunSpec) -> dict[str, object]:
    return {key: value for key, value in spec.experiment.variant.items() if key not in (TASK, "sampler", "pruner")}


def _entry(spec: RunSpec) -> str:
    options = {name: value for name, value in spec.options.items() if name not in spec.local_options}
    return canonical_json([spec.adapter, spec.platform, options])
