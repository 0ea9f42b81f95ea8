"""What is left to do after a worker died: tell the study, retry the trial, and find the asks that were lost."""

from __future__ import annotations

import math

from optuna.study import Study
from optuna.trial import TrialState

from tuneoff.base import clock
from tuneoff.base.identity import trial_name
from tuneoff.base.layout import EVENTS
from tuneoff.experiment.spec import Objective
from tuneoff.platform import Death
from tuneoff.record.events.reader import of_worker
from tuneoff.record.events.schema import Epoch, Event, Stage, TrialEnded, TrialSubmitted
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import Retries
from tuneoff_adapters.optuna.plan import RETRY_ATTEMPT, RETRY_OF, StudyPlan
from tuneoff_adapters.optuna.worker_state import WorkerStage, WorkerState, WorkerStateFile, death_file, died_at

_ENQUEUED = "fixed_params"  # where Optuna keeps the parameters of an enqueued trial (system attribute)


class WorkerRecovery:
    """Keeps the study right when workers die. Optuna does not notice: their trials would stay RUNNING for ever."""

    def __init__(self, context: RunContext, plan: StudyPlan, study: Study) -> None:
        self._context, self._plan, self._study = context, plan, study
        self._state_files = [
            WorkerStateFile(plan.state_path(worker), plan.is_on_hosts) for worker in range(context.spec.experiment.workers.count)
        ]
        self._retries = Retries(context.trial_context, context.spec.experiment.failures.retries)
        self.fruitless_deaths = 0  # in a row, without a new trial by anyone
        self._submitted_before = -1

    def recover(self, death: Death) -> int:
        """Record the death, tell the study how the worker's trial ended, and return how many asks must be repeated now.

        An ask is repeated for a retry: the configuration is enqueued, and whoever asks next gets it.
        """
        state = self._read(death)
        is_running = state.stage is WorkerStage.RUNNING
        may_retry = self._retries.may_retry(trial_name(state.trial), state.attempt, death.exit_code, death.worker) and is_running
        submitted = self._submitted()
        had_trial = state.stage not in (WorkerStage.IDLE, WorkerStage.ASKING)
        self.fruitless_deaths = self.fruitless_deaths * (submitted == self._submitted_before) + (not had_trial)
        self._submitted_before = submitted
        self._context.events.write(
            "worker_died",
            trial=trial_name(state.trial) if is_running else None,
            cause=death.cause,
            exit_code=death.exit_code,
            attempt=state.attempt if is_running else 1,
        )
        repeats = 0
        if had_trial:  # a lost ask is found by `settle`: only then is it known which trial was whose
            if is_running and self._plan.storage.heartbeat_seconds:
                # Optuna's heartbeat finds it, if anybody asks in time; else `settle` does
                death_file(self._plan.folder, state.number).write_text(str(clock.monotonic_ns()))
            elif state.stage is WorkerStage.COMPLETED:
                self._study.tell(state.number, state.value, skip_if_finished=True)
            else:
                trial_state = TrialState.PRUNED if state.stage is WorkerStage.PRUNED else TrialState.FAIL
                self._study.tell(state.number, state=trial_state, skip_if_finished=True)
            if may_retry:
                trial = self._study.get_trials(deepcopy=False)[state.number]
                self._study.enqueue_trial(trial.params, user_attrs={RETRY_OF: state.trial, RETRY_ATTEMPT: state.attempt + 1})
                repeats = 1
        state.stage = WorkerStage.IDLE  # done: another worker of this place may die before it writes a state of its own
        self._state_files[death.worker].write(state)
        return repeats

    def _read(self, death: Death) -> WorkerState:
        """Return the dead worker's state, as its events say where it died before it wrote that.

        A trial that was counted but never submitted becomes a lost ask again.
        """
        state = self._state_files[death.worker].read()
        if state.stage not in (WorkerStage.SUBMITTING, WorkerStage.RUNNING):
            return state
        key = trial_name(state.trial), state.attempt
        of_trial = (TrialSubmitted, Epoch, TrialEnded)
        budget = self._context.spec.experiment.budget
        written = of_worker(self._context.run_dir / EVENTS, death.pid, budget.epochs_per_trial)
        events = [event for event in written if isinstance(event, of_trial) and (event.trial, event.attempt) == key]
        if state.stage is WorkerStage.SUBMITTING and any(isinstance(event, TrialSubmitted) for event in events):
            state.stage, state.value = WorkerStage.RUNNING, math.nan
        elif state.stage is WorkerStage.SUBMITTING:
            state.stage = WorkerStage.ASKING
            state.submitted -= state.attempt == 1
        for event in events:
            if not isinstance(event, TrialSubmitted):
                follow(state, event, self._context.spec.experiment.objective)
        self._state_files[death.worker].write(state)  # a worker that takes this place goes on from it
        return state

    def settle(self) -> int:
        """Fail the trials that died with a worker inside its ask, and return how many asks must be repeated for them.

        Only for the time when no worker is busy: then every trial that is still RUNNING is such a one, or left to the heartbeat.
        """
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            self._study.tell(trial.number, state=TrialState.FAIL)
            if _ENQUEUED in trial.system_attrs and died_at(self._plan.folder, trial.number) is None:
                self._study.enqueue_trial(trial.system_attrs[_ENQUEUED], user_attrs=trial.user_attrs)
        waiting = self._study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        return self._plan.trials - self._submitted() + sum(RETRY_OF in trial.user_attrs for trial in waiting)

    def _submitted(self) -> int:
        return sum(file.read().submitted for file in self._state_files)


def follow(state: WorkerState, event: Event, objective: Objective) -> None:
    """Bring a state to what an event of its worker says, as the worker would itself."""
    if isinstance(event, TrialSubmitted):
        state.stage, state.number, state.trial = (
            WorkerStage.RUNNING,
            int(event.framework_id or 0),
            int(event.trial[1:]),
        )
        state.attempt, state.value = event.attempt, math.nan
        state.submitted += event.attempt == 1
    elif isinstance(event, Epoch):
        value = event.metrics[objective.metric]
        if value is not None and objective.is_better(value, than=None if math.isnan(state.value) else state.value):
            state.value = value
    elif isinstance(event, TrialEnded):
        state.stage = {"completed": WorkerStage.COMPLETED, "pruned": WorkerStage.PRUNED}.get(event.state, WorkerStage.FAILED)
    elif isinstance(event, Stage) and event.name == "tell":
        state.stage = WorkerStage.IDLE
