"""Syne Tune's tuner and local backend, quiet and with nothing left to their defaults; importing this module imports Syne Tune."""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend import LocalBackend
from syne_tune.backend.trial_status import Status
from syne_tune.tuning_status import TuningStatus

from tuneoff.base import clock
from tuneoff.base.process_limits import as_parent
from tuneoff.base.processes import kill_tree
from tuneoff.experiment.spec import Objective, Workers
from tuneoff.record.run_context import RunContext
from tuneoff.run import trial
from tuneoff_adapters.syne_tune import reporter
from tuneoff_adapters.syne_tune.budgeted import BudgetedScheduler
from tuneoff_adapters.syne_tune.dispatch import Dispatch
from tuneoff_adapters.syne_tune.offers import CAPABILITIES
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE

GONE_SECONDS = 10.0  # a process that outlives its SIGKILL by so long is flagged
NEVER_SECONDS = 1e9
TUNER_NAME = "tuner"  # its folder's name


class TrialProcesses(LocalBackend):  # type: ignore[misc]
    """One process per trial, as the parent class has it. Different are:

    - the command: a list (the parent splits a string at blanks), with the configuration in a JSON file;
    - what counts as complete: all its reports, whatever the exit code, or a training that ended by itself (for the parent: exit
      code 0, and the tuner then gives up altogether if there was no report);
    - a stopped trial is waited for, so that never more than `n_workers` processes exist.
    """

    def __init__(self, context: RunContext, dispatch: Dispatch, environment: Mapping[str, str]) -> None:
        super().__init__(entry_point=str(Path(trial.__file__).parent / "__main__.py"), rotate_gpus=False)
        self._context, self._dispatch = context, dispatch
        self._planned = 1 if context.spec.reports == "at_end" else context.spec.experiment.budget.epochs_per_trial
        self._final: dict[int, str] = {}
        self._environment = {
            **os.environ,
            "TUNEOFF_REPORTER": reporter.TARGET,
            **environment,
        }

    def stop_all(self) -> None:
        """End what still runs, when the tuner ends. The parent reads the whole output of every trial of the run again to
        find out what does, and fails for a trial whose start was interrupted."""
        since_ns = clock.monotonic_ns()
        for number, process in self.trial_subprocess.items():
            self._kill_process(number)
            if self._dispatch.is_goal_met and number not in self._final:
                self._dispatch.was_killed(number, process.pid, since_ns)

    def wait_all(self) -> None:
        """Wait for every process, after all were killed, so that none is left as a zombie."""
        for number in self.trial_subprocess:
            self._wait(number)

    def _schedule(self, trial_id: int, config: dict[str, Any]) -> None:
        task = self._dispatch.start(trial_id)
        folder = self.trial_path(trial_id)
        folder.mkdir(parents=True)
        configuration_file = folder / "configuration.json"
        configuration_file.write_text(json.dumps(dict(task.configuration)))
        command = self._context.trial_command(task.trial_id, configuration_file, task.attempt)
        with (folder / "std.out").open("wb") as stdout, (folder / "std.err").open("wb") as stderr:
            self.trial_subprocess[trial_id] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**self._environment, **as_parent(), "TUNEOFF_FRAMEWORK_ID": str(trial_id)},
            )
        self._busy_trial_id_candidates.add(trial_id)

    def _read_status(self, trial_id: int) -> str:
        status = self._final.get(trial_id)
        if status is None:
            process = self.trial_subprocess[trial_id]
            code = process.poll()
            if code is None:
                return str(Status.in_progress)
            if sum(line.startswith(f"[{reporter.TAG}]") for line in self.stdout(trial_id)) >= self._planned:
                status = str(Status.completed)
                self._dispatch.completed.add(trial_id)
            elif self._dispatch.has_completed_early(trial_id, process.pid, code):
                status = str(Status.completed)
            else:
                status = str(Status.failed)
            self._final[trial_id] = status
        return status

    def _stop_trial(self, trial_id: int, result: dict[str, Any] | None) -> None:
        since_ns = clock.monotonic_ns()
        super()._stop_trial(trial_id, result)
        if trial_id not in self._final:
            self._final[trial_id] = str(Status.stopped)
            self._dispatch.was_killed(trial_id, self.trial_subprocess[trial_id].pid, since_ns)

    def _kill_process(self, trial_id: int) -> None:
        """End a process and what it started but its resource tracker, which removes semaphores; LocalBackend calls it."""
        if self.trial_subprocess[trial_id].poll() is None:  # else its pid may be another process's by now
            kill_tree(self.trial_subprocess[trial_id].pid)
            self._wait(trial_id)

    def _wait(self, trial_id: int) -> None:
        process = self.trial_subprocess[trial_id]
        try:
            process.wait(GONE_SECONDS)
        except subprocess.TimeoutExpired:
            self._context.flag("trial_outlives_kill", f"process {process.pid} still exists {GONE_SECONDS:g} s after SIGKILL")


class PatientTuner(Tuner):  # type: ignore[misc]
    """A tuner that keeps asking for trials as long as one runs: a running trial may fail and be tried again."""

    def _schedule_new_tasks(self, running_trials_ids: set[int]) -> None:
        try:
            super()._schedule_new_tasks(running_trials_ids)
        except StopIteration:
            if not running_trials_ids:
                raise
            self._sleep()


def goal_criterion(objective: Objective, dispatch: Dispatch) -> Callable[[TuningStatus], bool]:
    """Return Syne Tune's criterion for the goal; it is asked after new trials were started, and stops beyond its bound."""
    bound, beyond = ("max_metric_value", -math.inf) if objective.mode == "max" else ("min_metric_value", math.inf)
    assert objective.goal is not None
    criterion = StoppingCriterion(**{bound: {OBJECTIVE: math.nextafter(objective.goal, beyond)}})

    def is_met(status: TuningStatus) -> bool:
        if not criterion(status):
            return False
        for number, statistics in status.trial_metric_statistics.items():
            values = statistics.max_metrics if objective.mode == "max" else statistics.min_metrics
            if not dispatch.is_goal_met and objective.is_met(values.get(OBJECTIVE)):
                dispatch.goal_met(number, CAPABILITIES.stops_at_goal)
        return True

    return is_met


class Silence:
    """Stands in for Syne Tune's logger, which prints coloured text and emojis for every trial."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *values, **named: None


def make_tuner(
    backend: TrialProcesses,
    scheduler: BudgetedScheduler,
    workers: Workers,
    poll_seconds: float,
    criterion: Callable[[TuningStatus], bool] = lambda status: False,
) -> PatientTuner:
    """Return the tuner of a run; it ends when the scheduler suggests nothing and nothing runs, or by the criterion."""
    tuner = PatientTuner(
        trial_backend=backend,
        scheduler=scheduler,
        stop_criterion=criterion,
        n_workers=workers.count,
        sleep_time=poll_seconds,
        results_update_interval=NEVER_SECONDS,
        print_update_interval=NEVER_SECONDS,
        max_failures=sys.maxsize,  # core counts failures
        tuner_name=TUNER_NAME,
        suffix_tuner_name=False,
        asynchronous_scheduling=True,
        wait_trial_completion_when_stopping=False,
        callbacks=[],  # core's events are the results
        save_tuner=False,
        start_jobs_without_delay=True,
        **({"output_logger": Silence()} if "output_logger" in inspect.signature(Tuner).parameters else {}),  # since 0.15
    )
    tuner.tuning_status = TuningStatus(metric_names=scheduler.metric_names())  # its clean-up needs one from the start
    return tuner
