"""Syne Tune's tuner, quiet and with nothing left to its defaults; importing this module imports Syne Tune."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from syne_tune import Tuner
from syne_tune.tuning_status import TuningStatus

from tuneoff.experiment.spec import Workers
from tuneoff_adapters.syne_tune.backend import TrialProcesses
from tuneoff_adapters.syne_tune.budgeted import BudgetedScheduler

NEVER_SECONDS = 1e9
TUNER_NAME = "tuner"  # its folder's name


class PatientTuner(Tuner):  # type: ignore[misc]
    """A tuner that keeps asking for trials as long as one runs: a running trial may fail and be tried again."""

    def _schedule_new_tasks(self, running_trials_ids: set[int]) -> None:
        try:
            super()._schedule_new_tasks(running_trials_ids)
        except StopIteration:
            if not running_trials_ids:
                raise
            self._sleep()


class Silence:
    """Stands in for Syne Tune's logger, which prints coloured text and emojis for every trial."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def print_nothing(*values: Any, **named: Any) -> None:
            pass

        return print_nothing


def make_tuner(backend: TrialProcesses, scheduler: BudgetedScheduler, workers: Workers, poll_seconds: float) -> PatientTuner:
    """Return the tuner of a run; it ends when the scheduler suggests nothing and nothing runs."""
    tuner = PatientTuner(
        trial_backend=backend,
        scheduler=scheduler,
        stop_criterion=lambda status: False,
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
        output_logger=Silence(),
    )
    tuner.tuning_status = TuningStatus(metric_names=scheduler.metric_names())  # its clean-up needs one from the start
    return tuner
