"""A metric of a run, or why it has none; and in how many runs other programs used the processors."""

from __future__ import annotations

from collections.abc import Iterable

from tuneoff.judge.answers.answer import Disturbance, Value
from tuneoff.judge.runs import Run
from tuneoff.measure.disturbance import DISTURBED, SHARE
from tuneoff.measure.resumed import RESUMED, is_counted

ABSENT = "its record has no such metric"
FEWEST_UNDISTURBED = 6  # pairs: with fewer no difference can be shown at 5 %


def value(run: Run, metric: str) -> Value:
    """Return a metric of a run that is done; of a run that was continued only what counts trials or says how good they are."""
    record = run.record
    if record is None or record.status != "done":
        return Value(seed=run.seed, value=None, reason=_why(run))
    if record.continues is not None and not is_counted(metric):
        return Value(seed=run.seed, value=None, reason=RESUMED)
    found = record.metrics.get(metric)
    if found is None:
        return Value(seed=run.seed, value=None, reason=ABSENT)
    return Value(seed=run.seed, value=found.value, kind=found.kind, reason=found.reason_if_null)


def units(runs: Iterable[Run], metrics: Iterable[str]) -> dict[str, str]:
    """Return the unit of each metric, as the first record that has it says."""
    wanted, found = set(metrics), {}
    for run in runs:
        if not wanted:
            break
        for metric in [name for name in wanted if run.record is not None and name in run.record.metrics]:
            found[metric] = run.record.metrics[metric].unit if run.record is not None else ""
            wanted.discard(metric)
    return found


def _why(run: Run) -> str:
    record = run.record
    status, reason = (record.status, record.reason) if record is not None else (run.ref.status, run.ref.reason)
    return f"{status}: {reason}" if reason and reason != status else status


def disturbance(runs: Iterable[Run]) -> Disturbance:
    """Return which of these runs were disturbed; an execution that stands for several runs counts once.

    Runs without a record are left out: nothing rests on them.
    """
    found = {run.record.execution_id: is_disturbed(run) for run in runs if run.record is not None}
    return Disturbance(
        runs=frozenset(found),
        disturbed=frozenset(name for name, one in found.items() if one is True),
        unknown=frozenset(name for name, one in found.items() if one is None),
    )


def is_disturbed(run: Run) -> bool | None:
    """Tell whether other programs disturbed a run; None where its samples do not tell, or there are none."""
    record = run.record
    if record is None:
        return None
    if any(flag.name == DISTURBED for flag in record.flags):
        return True
    share = record.metrics.get(SHARE)
    return None if share is None or share.value is None else False
