"""A run's budget while it runs: tickets shared by all of its processes, and the deadline."""

from __future__ import annotations

from tuneoff.base import clock
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.locks import Tickets


class TrialBudget:
    """Trials, epochs in total and seconds of one run, as any of its processes sees them.

    `run_trial` enforces it. An adapter asks `is_used_up` before it proposes a trial, because every further one would be
    refused or cancelled.
    """

    def __init__(self, context: TrialContext) -> None:
        self.tickets = Tickets(f"{context.run_dir}/tickets", context.trials)
        self.epoch_tickets = Tickets(f"{context.run_dir}/epoch_tickets", context.epochs_total)
        self._wall_clock_seconds = context.wall_clock_seconds
        self._deadline_ns: int | None = None

    def is_used_up(self) -> bool:
        """Tell whether the budget of seconds or of epochs is used up. (That of trials: whoever proposes counts them.)"""
        limit = self.epoch_tickets.limit
        return self.is_over_time() or (limit is not None and self.epoch_tickets.taken >= limit)

    def is_over_time(self) -> bool:
        """Tell whether the wall-clock budget is used up: counted from the first ticket of the run."""
        if self._wall_clock_seconds is None:
            return False
        if self._wall_clock_seconds <= 0:  # used up by an earlier execution of the run
            return True
        if self._deadline_ns is None:
            first = self.tickets.first_ns
            if first is None:
                return False
            self._deadline_ns = first + int(self._wall_clock_seconds * clock.NANOSECONDS)
        return clock.monotonic_ns() > self._deadline_ns

    def close(self) -> None:
        self.tickets.close()
        self.epoch_tickets.close()
