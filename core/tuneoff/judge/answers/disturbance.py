"""In how many runs other programs used the processors: what a claim on them says of it."""

from __future__ import annotations

from collections.abc import Iterable

from tuneoff.judge.answers.answer import Disturbance
from tuneoff.judge.runs import Run
from tuneoff.measure.disturbance import DISTURBED, SHARE

FEWEST_UNDISTURBED = 6  # pairs: with fewer no difference can be shown at 5 %


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
