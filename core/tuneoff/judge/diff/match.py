"""Which groups of two folders are the same experiment, by run ids: these hold no versions and no machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from tuneoff.base.format import counted
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.judge.diff.comparison import Matched
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Group

MOST = 3  # differences of a specification that are named
_NO_PART = ("seed", "adapter_target", "local_options", "experiment.timeouts", "experiment.variant", "experiment.workload.target")


def matched(old: Sequence[Group], new: Sequence[Group]) -> list[Matched]:
    """Return the entries that share runs, with these runs alone, in the order of the old folder."""
    by_run = {run.ref.run_id: cell for cell in new for run in cell.runs}
    found = []
    for cell in old:
        shared = {run.ref.run_id for run in cell.runs if run.ref.run_id in by_run}
        if shared:
            other = by_run[next(run.ref.run_id for run in cell.runs if run.ref.run_id in shared)]
            found.append(Matched(old=_restricted(cell, shared), new=_restricted(other, shared)))
    return found


def check_some(found: Sequence[Matched], old: Results, new: Results) -> None:
    """Refuse folders that have no run in common.

    Raises:
        ExperimentError: they hold other experiments; the first differences are named.
    """
    if found:
        return
    why = next((f": {', '.join(text)}" for text in _of_same_adapter(old, new) if text), "")
    raise ExperimentError(
        f"two folders with the same experiments are needed, but {old.folder} ({old.plan.name}) and {new.folder} "
        f"({new.plan.name}) have no run in common{why}; run the same file twice"
    )


def left_out(old: Sequence[Group], new: Sequence[Group]) -> list[str]:
    """Return the entries that are in one folder alone, or of which each folder has another experiment, and seeds left out."""
    ids = {run.ref.run_id for cell in old for run in cell.runs} & {run.ref.run_id for cell in new for run in cell.runs}
    texts = []
    for side, own, others in (("A", old, new), ("B", new, old)):
        for cell in own:
            name = f"{cell.label} {cell.scope.text}"
            alone = [run for run in cell.runs if run.ref.run_id not in ids]
            if 0 < len(alone) < len(cell.runs):
                texts.append(f"{name}: {counted(len(alone), 'seed')} only in {side}")
            if len(alone) < len(cell.runs):
                continue
            twin = next((one for one in others if (one.label, one.scope) == (cell.label, cell.scope)), None)
            if twin is None:
                texts.append(f"{name}: only in {side}")
            elif side == "A":
                texts.append(f"{name}: another experiment: {', '.join(differences(cell.spec, twin.spec)) or 'other seeds'}")
    return texts


def differences(old: RunSpec, new: RunSpec) -> list[str]:
    """Return the first things by which two specifications differ, seeds and what no run id holds aside."""
    ours, theirs = (dict(_flat(run_spec_to_json(spec))) for spec in (old, new))
    names = [name for name in dict.fromkeys([*ours, *theirs]) if not name.startswith(_NO_PART)]
    unequal = [name for name in names if ours.get(name) != theirs.get(name)]
    texts = [f"{name.removeprefix('experiment.')} {ours.get(name)!r} became {theirs.get(name)!r}" for name in unequal[:MOST]]
    return [*texts, *([f"{len(unequal) - MOST} more"] if len(unequal) > MOST else [])]


def _of_same_adapter(old: Results, new: Results) -> Iterator[list[str]]:
    """Yield how the first runs of the same adapter differ."""
    others = {run.spec.adapter: run.spec for run in reversed(new.planned)}
    for run in old.planned:
        if run.spec.adapter in others:
            yield differences(run.spec, others[run.spec.adapter]) or ["other seeds"]


def _restricted(cell: Group, run_ids: Set[str]) -> Group:
    return replace(cell, runs=tuple(run for run in cell.runs if run.ref.run_id in run_ids))


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{above}{name}.")
        else:
            yield f"{above}{name}", item
