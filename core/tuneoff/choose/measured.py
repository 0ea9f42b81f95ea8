"""What results folders measured, and where: the settings in which adapters were compared, without emulated platforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.answers.model import Answers, Group, Scope
from tuneoff.choose.bracket import Range
from tuneoff.choose.request import TRIAL_SECONDS, TRIALS, WORKERS, Request

if TYPE_CHECKING:
    from tuneoff.answers.results import Results

BUSY = "trial_execution.median"  # of a run's trials, in ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a folder: its scope, its sizes, and the groups that were measured there, in the answers' order.

    `family` is what settings must share to lie around another one: workload, sampler and pruner. `sizes` lacks the seconds per
    trial where no run is done.
    """

    folder: Path
    file: str  # the matrix file of the folder
    answers: Answers
    scope: Scope
    family: str
    sizes: Mapping[str, Range]
    groups: tuple[Group, ...]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A results folder with its answers."""

    results: Results
    answers: Answers


def settings(folders: Sequence[Folder], adapters: Sequence[str], request: Request) -> list[Setting]:
    """Return the settings in which at least one of the adapters has a run that is done, as far as the request asks for them."""
    return [setting for folder in folders for setting in _of_folder(folder, set(adapters), request)]


def on_stand_ins(folders: Sequence[Folder]) -> list[OnStandIn]:
    """Return what was measured on emulated platforms."""
    return [
        OnStandIn(folder=folder.results.folder, adapter=group.adapter, label=group.label, runs=done(group))
        for folder in folders
        for group in folder.answers.groups
        if group.emulated and done(group)
    ]


def done(group: Group) -> int:
    """Return how many of a group's runs are done."""
    return sum(run.status == "done" for run in group.runs)


def _of_folder(folder: Folder, adapters: set[str], request: Request) -> Iterator[Setting]:
    planned = {run.run_id: run.spec for run in folder.results.planned}
    for scope in folder.answers.scopes:
        if request.sampler not in (None, scope.sampler) or request.pruner not in (None, scope.pruner):
            continue
        groups = [group for group in folder.answers.groups if group.scope == scope and _counts(group, adapters)]
        groups = [group for group in groups if request.platform in (None, planned[group.runs[0].run_id].platform)]
        if not any(done(group) for group in groups):
            continue
        experiment = planned[groups[0].runs[0].run_id].experiment
        sizes = {
            WORKERS: (float(experiment.workers.count),) * 2,
            TRIALS: (float(experiment.budget.trials),) * 2,
        }
        busy = list(_busy_seconds(groups, folder.results))
        if busy:
            sizes[TRIAL_SECONDS] = (min(busy), max(busy))
        yield Setting(
            folder=folder.results.folder,
            file=folder.results.plan.path,
            answers=folder.answers,
            scope=scope,
            family=_family(experiment.workload.name, scope),
            sizes=sizes,
            groups=tuple(groups),
        )


def _counts(group: Group, adapters: set[str]) -> bool:
    """Tell whether a group is one to choose: of a capable adapter, real, no repetition, and with runs that were tried."""
    is_tried = any(run.status == "done" or run.is_failure for run in group.runs)
    return group.adapter in adapters and not group.emulated and group.replicate == 0 and is_tried


def _busy_seconds(groups: Sequence[Group], results: Results) -> Iterator[float]:
    """Yield the median busy time of the trials of each run."""
    for group in groups:
        for run in group.runs:
            record = results.standing.get(run.run_id)
            value = record.metrics[BUSY].value if record is not None and BUSY in record.metrics else None
            if run.status == "done" and value is not None:
                yield value / 1000


def _family(workload: str, scope: Scope) -> str:
    pruner = f" + {scope.pruner}" if scope.pruner != "none" else ""
    return f"workload {workload}, sampler {scope.sampler}{pruner}"
