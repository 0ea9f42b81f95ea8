"""Which of a run's executions is selected: it stands for the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tuneoff.record.run_record import FAILED, RunRecord

REPEAT = "repeat"  # in a record's environment: which repetition of its block it belongs to, and why the block is repeated


def is_final(record: RunRecord) -> bool:
    """Tell whether `--resume` leaves a run alone: done, or failed for reasons that a repetition would meet again."""
    if record.status == "done":
        return True
    return record.status in FAILED and record.charged not in ("infrastructure", "user", None)


def repeat_number(record: RunRecord) -> int:
    """Return which repetition of its block an execution is; 0: the first execution, or a run that was resumed."""
    repeat = record.environment.get(REPEAT)
    number = repeat.get("number") if isinstance(repeat, Mapping) else None
    return number if isinstance(number, int) else 0


def selected_executions(records: Iterable[RunRecord]) -> dict[str, RunRecord]:
    """Return the selected execution of each run: the latest that is done, else the latest; in the order of first appearance.

    Where its block was repeated, the repetition that came to an end stands, whatever it came to: it was decided blind.
    """
    best: dict[str, RunRecord] = {}
    for record in records:
        previous = best.get(record.run_id)
        if previous is None or _rank(record) > _rank(previous):
            best[record.run_id] = record
    return best


def _rank(record: RunRecord) -> tuple[bool, int, str, str]:
    number = repeat_number(record)
    is_eligible = record.status == "done" or (number > 0 and is_final(record))
    return is_eligible, number if is_eligible else 0, record.started_at or "", record.execution_id
