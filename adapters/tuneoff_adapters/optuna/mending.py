"""What is left to do after a worker died: tell the study, retry the trial, and find the asks that were lost."""

from __future__ import annotations

import math

from optuna.study import Study
from optuna.trial import TrialState

from tuneoff.base.identity import trial_name
from tuneoff.base.layout import EVENTS
from tuneoff.experiment.spec import Objective
from tuneoff.record.events.reader import SUFFIX, Statistics, read_file
from tuneoff.record.events.schema import Epoch, Event, Stage, TrialEnded, TrialSubmitted
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.pool import Death
from tuneoff_adapters.optuna.note import NoteFile, WorkerNote, WorkerStage, died_at, note_death
from tuneoff_adapters.optuna.plan import RETRY_ATTEMPT, RETRY_OF, StudyPlan

_ENQUEUED = "fixed_params"  # where Optuna keeps the parameters of an enqueued trial (system attribute)


class Mender:
    """Keeps the study right when workers die. Optuna does not notice: their trials would stay RUNNING for ever."""

    def __init__(self, context: RunContext, plan: StudyPlan, study: Study) -> None:
        self._context, self._plan, self._study = context, plan, study
        self._notes = [NoteFile(plan.note(worker), plan.is_on_hosts) for worker in range(context.spec.experiment.workers.count)]
        self._retries = Retries(context.trial_context, context.spec.experiment.failures.retries)
        self.fruitless_deaths = 0  # in a row, without a new trial by anyone
        self._submitted_before = -1

    def mend(self, death: Death) -> int:
        """Record the death, tell the study how the worker's trial ended, and return how many asks must be repeated now.

        An ask is repeated for a retry: the configuration is enqueued, and whoever asks next gets it.
        """
        note = self._read(death)
        repeats = self._mend(death, note)
        note.stage = WorkerStage.IDLE  # done: another worker of this place may die before it writes a note of its own
        self._notes[death.worker].write(note)
        return repeats

    def _mend(self, death: Death, note: WorkerNote) -> int:
        running = note.stage is WorkerStage.RUNNING
        may_retry = self._retries.may_retry(trial_name(note.trial), note.attempt, death.exit_code, death.worker) and running
        self._count(note)
        self._context.events.write(
            "worker_died",
            trial=trial_name(note.trial) if running else None,
            cause=death.cause,
            exit_code=death.exit_code,
            attempt=note.attempt if running else 1,
        )
        if note.stage in (WorkerStage.IDLE, WorkerStage.ASKING):
            return 0  # a lost ask is found by `settle`: only then is it known which trial was whose
        if running and self._plan.storage.heartbeat_seconds:
            note_death(self._plan.folder, note.number)  # Optuna's heartbeat finds it, if anybody asks in time; else `settle` does
        else:
            self._tell(note)
        if not may_retry:
            return 0
        trial = self._study.get_trials(deepcopy=False)[note.number]
        self._study.enqueue_trial(trial.params, user_attrs={RETRY_OF: note.trial, RETRY_ATTEMPT: note.attempt + 1})
        return 1

    def _read(self, death: Death) -> WorkerNote:
        """Return the dead worker's note; a trial that was counted but never submitted becomes a lost ask again."""
        note = self._notes[death.worker].read()
        if note.stage is WorkerStage.SUBMITTING:
            files = (self._context.run_dir / EVENTS).glob(f"worker-{death.pid}-*{SUFFIX}")
            submission = trial_name(note.trial), note.attempt
            if any(  # a torn last line does not count
                isinstance(event, TrialSubmitted) and (event.trial, event.attempt) == submission
                for path in files
                for _, event in read_file(path, Statistics())
            ):
                note.stage = WorkerStage.RUNNING
            else:
                note.stage = WorkerStage.ASKING
                note.submitted -= note.attempt == 1
            self._notes[death.worker].write(note)  # a worker that takes this place goes on from it
        return note

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
        return sum(note.read().submitted for note in self._notes)

    def _count(self, note: WorkerNote) -> None:
        submitted = self._submitted()
        is_fruitless = note.stage in (WorkerStage.IDLE, WorkerStage.ASKING)
        self.fruitless_deaths = self.fruitless_deaths * (submitted == self._submitted_before) + is_fruitless
        self._submitted_before = submitted

    def _tell(self, note: WorkerNote) -> None:
        if note.stage is WorkerStage.COMPLETED:
            self._study.tell(note.number, note.value, skip_if_finished=True)
        else:
            state = TrialState.PRUNED if note.stage is WorkerStage.PRUNED else TrialState.FAIL
            self._study.tell(note.number, state=state, skip_if_finished=True)


def follow(note: WorkerNote, event: Event, objective: Objective) -> None:
    """Bring a note to what an event of its worker says, as the worker would itself."""
    if isinstance(event, TrialSubmitted):
        note.stage, note.number, note.trial = WorkerStage.RUNNING, int(event.framework_id or 0), int(event.trial[1:])
        note.attempt, note.value = event.attempt, math.nan
        note.submitted += event.attempt == 1
    elif isinstance(event, Epoch):
        value = event.metrics[objective.metric]
        if value is not None and objective.is_better(value, than=None if math.isnan(note.value) else note.value):
            note.value = value
    elif isinstance(event, TrialEnded):
        note.stage = {"completed": WorkerStage.COMPLETED, "pruned": WorkerStage.PRUNED}.get(event.state, WorkerStage.FAILED)
    elif isinstance(event, Stage) and event.name == "tell":
        note.stage = WorkerStage.IDLE
