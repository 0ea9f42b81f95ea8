"""What Syne Tune's trial numbers stand for: the scheduler proposes a task, the backend starts it and sees how it ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuneoff.base import clock
from tuneoff.base.layout import EVENTS
from tuneoff.base.processes import ended
from tuneoff.record.events.reader import Statistics, read_file
from tuneoff.record.events.schema import Epoch, TrialEnded, TrialRefused, TrialStarted
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.trial_process import TrialBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTask:
    """One attempt at a trial: core's configuration, its digest, and Syne Tune's own values for it."""

    trial_id: str
    configuration: Mapping[str, Any]
    digest: str
    native: Mapping[str, Any]
    attempt: int = 1


class Dispatch:
    """The book of a run: tasks by Syne Tune's trial number, how they ended, and what is to be tried again.

    Syne Tune knows no retries: a retry is a new trial for it, and the same trial with the next attempt for core.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        experiment = context.spec.experiment
        self._epochs = experiment.budget.epochs_per_trial
        self._retry_rule = Retries(context.trial_context, experiment.failures.retries)
        self.budget = TrialBudget(context.trial_context)
        self.upcoming: TrialTask  # what the scheduler proposed last: the next `start` is of it
        self._stopped: set[int] = set()
        self._deaths: dict[int, tuple[int, AttemptProgress]] = {}  # exit code (negative: signal), what the process had done
        self.retries: deque[TrialTask] = deque()  # to be tried again
        self._ended_early: set[int] = set()
        self.tasks: dict[int, TrialTask] = {}
        self.completed: set[int] = set()
        self.is_goal_met = False

    def start(self, number: int) -> TrialTask:
        """Give the proposed task Syne Tune's trial number and announce its submission."""
        task = self.upcoming
        self.tasks[number] = task
        self._context.submitted(task.trial_id, task.configuration, str(number), task.attempt)
        return task

    def stop_decided(self, number: int, epoch: int) -> None:
        """Log that Syne Tune stops a trial because of its report of `epoch`."""
        self._stopped.add(number)
        if number in self._ended_early:  # its process was gone before the tuner read that report
            self.completed.discard(number)
        self._context.events.write("stop_decided", trial=self.tasks[number].trial_id, epoch=epoch)

    def goal_met(self, number: int, by: str) -> None:
        """Log that Syne Tune ends the tuning as this trial has met the goal: it counts as complete, wherever it is ended."""
        self.is_goal_met = True
        self.completed.add(number)
        self._context.events.write("goal_met", trial=self.tasks[number].trial_id, by=by)

    def has_completed_early(self, number: int, pid: int, exit_code: int) -> bool:
        """Tell, of a process that is gone before all its epochs were reported, whether its training ended by itself.

        Else the trial failed: log it where the trial could not.
        """
        task, progress = self._read(number, pid)
        if progress.ended_early:
            self._ended_early.add(number)
            self.completed.add(number)
            return True
        self._deaths[number] = exit_code, progress
        if not progress.has_ended:
            cause = f"trial process {pid} {ended(exit_code)}"
            self._context.events.write("worker_died", trial=task.trial_id, attempt=task.attempt, exit_code=exit_code, cause=cause)
        return False

    def was_killed(self, number: int, pid: int, since_ns: int) -> None:
        """Log the end of a trial that Syne Tune stopped by SIGKILL between `since_ns` (monotonic) and now."""
        now = clock.monotonic_ns()
        task, progress = self._read(number, pid)
        is_complete = progress.epochs >= self._epochs
        if is_complete:
            self.completed.add(number)
        events = self._context.events
        if not progress.has_ended:
            events.write(
                "trial_ended",
                t=now,
                trial=task.trial_id,
                attempt=task.attempt,
                state="completed" if is_complete else "pruned",
                epochs=progress.epochs,
                by="coordinator",
                uncertainty_ns=now - since_ns,
            )
        events.write("stage", name="stop", duration_ns=now - since_ns, trial=task.trial_id)

    def retry(self, number: int) -> None:
        """Queue a failed trial again if it was a fault of the infrastructure and retries are left."""
        death = self._deaths.get(number)
        if death is None:
            return
        task, (exit_code, progress) = self.tasks[number], death
        if self._retry_rule.may_retry(task.trial_id, task.attempt, exit_code, progress.slot) and number not in self._stopped:
            self.retries.append(replace(task, attempt=task.attempt + 1))

    def _read(self, number: int, pid: int) -> tuple[TrialTask, AttemptProgress]:
        """Return the task of a number and its progress, when its process is gone; an empty one if it wrote nothing.

        Raises:
            ResultsError: its event file cannot be read.
        """
        task, progress = self.tasks[number], AttemptProgress()
        attempt = task.trial_id, task.attempt
        paths = (self._context.run_dir / EVENTS).glob(f"trial-{pid}-*.jsonl")  # several, where the system used the pid again
        for _, event in (pair for path in paths for pair in read_file(path, Statistics())):
            if isinstance(event, TrialRefused):
                progress.has_ended |= event.trial == task.trial_id
            elif not isinstance(event, TrialStarted | Epoch | TrialEnded) or (event.trial, event.attempt) != attempt:
                continue
            elif isinstance(event, TrialStarted):
                progress.slot = event.slot
            elif isinstance(event, Epoch):
                progress.epochs = event.epoch
            else:
                progress.has_ended, progress.ended_early = True, event.ended_early
        return task, progress


@dataclass(slots=True, kw_only=True)
class AttemptProgress:
    """Epochs that were run, the slot that was held, and whether the process wrote the attempt's end (or its refusal).

    `ended_early`: by that end the training ended by itself.
    """

    epochs: int = 0
    slot: int | None = None
    has_ended: bool = False
    ended_early: bool = False
