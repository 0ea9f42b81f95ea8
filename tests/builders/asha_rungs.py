"""Where ASHA decides, computed without any framework."""

from __future__ import annotations


def rungs(first_rung_epochs: int, reduction_factor: int, epochs_per_trial: int) -> list[int]:
    """Return the epochs, counted from 1, after which ASHA compares a trial; the last epoch is none of them."""
    epochs = []
    rung = first_rung_epochs
    while rung < epochs_per_trial:
        epochs.append(rung)
        rung *= reduction_factor
    return epochs
