"""What results folders measured, and where: the settings in which adapters were compared, without emulated platforms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.judge.answers.answer import Answers, EstimatedGroup
from tuneoff.judge.recommend.request import TRIAL_SECONDS, TRIALS, WORKERS, Range, Request
from tuneoff.judge.runs import POOL, Run, Scope, grouped

if TYPE_CHECKING:
    from tuneoff.judge.choice.choose import Answered
    from tuneoff.record.run_record import RunRecord

BUSY = "trial_execution.median"  # of a run's trials, in ms


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSetting:
    """One setting of a folder: its scope, its sizes, and the groups that were measured there, in the answers' order.

    `floor`: the plain pool beside them, which is no choice; nothing where it was not measured.
    `family` is what settings must share to lie around another one: workload, sampler and pruner. `sizes` lacks the seconds per
    trial where no run is done.
    """

    folder: Path
    file: str  # the matrix file of the folder
    answers: Answers
    scope: Scope
    family: str
    sizes: Mapping[str, Range]
    groups: tuple[EstimatedGroup, ...]
    floor: tuple[EstimatedGroup, ...]
    executions: Mapping[str, tuple[str, str]]  # by run id: the run that stands for it, and its execution

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(group.label for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnStandIn:
    """Groups of an adapter that were only measured on an emulated platform: they recommend nothing."""

    folder: Path
    adapter: str
    label: str
    runs: int  # done


def settings(folders: Sequence[Answered], adapters: Sequence[str], request: Request) -> list[MeasuredSetting]:
    """Return the settings in which at least one of the adapters has a run that is done, as far as the request asks for them."""
    return [setting for folder in folders for setting in _of_folder(folder, set(adapters), request)]


def on_stand_ins(folders: Sequence[Answered]) -> list[OnStandIn]:
    """Return what was measured on emulated platforms, by folder and label."""
    counts: Counter[tuple[Path, str, str]] = Counter()
    for folder in folders:
        for group in folder.answers.groups:
            if group.emulated:
                counts[folder.results.folder, group.adapter, group.label] += done(group)
    return [OnStandIn(folder=path, adapter=name, label=label, runs=runs) for (path, name, label), runs in counts.items() if runs]


def done(group: EstimatedGroup) -> int:
    """Return how many of a group's runs are done."""
    return sum(run.status == "done" for run in group.runs)


def _of_folder(folder: Answered, adapters: set[str], request: Request) -> Iterator[MeasuredSetting]:
    runs = {run.ref.run_id: run for group in grouped(folder.results) for run in group.runs}
    for scope in folder.answers.scopes:
        if request.sampler not in (None, scope.sampler) or request.pruner not in (None, scope.pruner):
            continue
        here = [group for group in folder.answers.groups if group.scope == scope and _counts(group, {*adapters, POOL})]
        here = [group for group in here if request.platform in (None, runs[group.runs[0].run_id].spec.platform)]
        groups = [group for group in here if group.adapter != POOL and any(_records(group, runs))]
        records = {group.label: list(_records(group, runs)) for group in groups}
        if not any(record.status == "done" for own in records.values() for record in own):
            continue
        experiment = runs[groups[0].runs[0].run_id].spec.experiment
        sizes = {
            WORKERS: (float(experiment.workers.count),) * 2,
            TRIALS: (float(experiment.budget.trials),) * 2,
        }
        busy = [seconds for own in records.values() for seconds in _busy_seconds(own)]
        if busy:
            sizes[TRIAL_SECONDS] = (min(busy), max(busy))
        yield MeasuredSetting(
            folder=folder.results.folder,
            file=folder.results.plan.path,
            answers=folder.answers,
            scope=scope,
            family=_family(experiment.workload.name, scope),
            sizes=sizes,
            groups=tuple(groups),
            floor=tuple(group for group in here if group.adapter == POOL),
            executions={
                run.run_id: (record.run_id, record.execution_id)
                for group in here
                for run in group.runs
                if (record := runs[run.run_id].record) is not None
            },
        )


def _counts(group: EstimatedGroup, adapters: set[str]) -> bool:
    """Tell whether a group is one to choose: of a capable adapter, real, and no repetition of another entry."""
    return group.adapter in adapters and not group.emulated and group.replicate == 0


def _records(group: EstimatedGroup, runs: Mapping[str, Run]) -> Iterator[RunRecord]:
    """Yield the records of the runs that were tried to their end."""
    for run in group.runs:
        record = runs[run.run_id].record
        if record is not None and runs[run.run_id].has_ended:
            yield record


def _busy_seconds(records: Sequence[RunRecord]) -> Iterator[float]:
    """Yield the median busy time of the trials of each run that is done."""
    for record in records:
        value = record.metrics[BUSY].value if BUSY in record.metrics else None
        if record.status == "done" and value is not None:
            yield value / 1000


def _family(workload: str, scope: Scope) -> str:
    pruner = f" + {scope.pruner}" if scope.pruner != "none" else ""
    return f"workload {workload}, sampler {scope.sampler}{pruner}"
