"""What a running matrix tells whoever shows it: the command line's live progress, or nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """A run at a moment, as the supervisor sees it in the event log."""

    run_id: str
    step: str
    seconds: float  # since the run's start
    trials: int  # the budget
    epochs_per_trial: int
    submitted: int = 0
    running: int = 0
    completed: int = 0
    pruned: int = 0
    failed: int = 0
    cancelled: int = 0
    epochs: int = 0
    incumbent: float | None = None  # best validation value of a completed trial

    @property
    def ended(self) -> int:
        return self.completed + self.pruned + self.failed + self.cancelled

    @property
    def seconds_left(self) -> float | None:
        """Estimated from the rate of ended trials; None before the first."""
        return self.seconds / self.ended * (self.trials - self.ended) if self.ended else None


class Listener:
    """Receives progress, and shows nothing of it; every method of who derives from it returns at once."""

    def noted(self, text: str) -> None:
        """One line on the whole matrix, or, with `! ` before it, on what is wrong with the run that has just ended."""

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        """Run `position` (from 1) of the `total` that this command runs starts."""

    def run_progress(self, live: LiveRun) -> None:
        """Called a few times per second while a run lasts."""

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        """A run ended: status done, failed, timeout or interrupted; or this command does not run it: `seconds` is 0."""
