"""How trials ended, where Ray cannot say so: it takes a cancelled trial for one that ran to its end.

The notes are files in the run's folder, which all hosts share.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = "exits"


def note_cancelled(run_dir: str, trial_id: str, attempt: int) -> None:
    """Leave a note that the budget ended a trial which had reported epochs."""
    path = _cancelled(run_dir, trial_id, attempt)
    path.parent.mkdir(exist_ok=True)
    path.touch()


def was_cancelled(run_dir: str | Path, trial_id: str, attempt: int) -> bool:
    """Tell whether the budget ended an attempt that had reported epochs."""
    return _cancelled(run_dir, trial_id, attempt).exists()


def _cancelled(run_dir: str | Path, trial_id: str, attempt: int) -> Path:
    return Path(run_dir) / FOLDER / f"{trial_id}.{attempt}.cancelled"
