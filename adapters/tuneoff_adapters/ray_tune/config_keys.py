"""What the driver and its actors hand over to each other; an actor imports nothing else of the driver's."""

from __future__ import annotations

from pathlib import Path

from tuneoff.base.layout import EXITS

TASK = "__tuneoff__"  # the key of the trainable's config that holds what `train` needs
OBJECTIVE, EPOCH = "objective", "epoch"  # what a trial reports; fixed, so that no metric's name meets one of Ray's


def cancellation(run_dir: str | Path, trial_id: str, attempt: int) -> Path:
    """Return the file that says, where it exists, that the budget ended an attempt which had reported epochs.

    Ray cannot say so: it takes a cancelled trial for one that ran to its end. The run's folder is shared by all hosts.
    """
    return Path(run_dir) / EXITS / f"{trial_id}.{attempt}.cancelled"
