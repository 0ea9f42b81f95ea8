"""A worker process: asks, trains, reports and tells, one trial after another. Imports Optuna."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from optuna import TrialPruned, exceptions
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from tuneoff.base import clock
from tuneoff.base.identity import trial_name
from tuneoff.base.tracebacks import origins
from tuneoff.errors import InfrastructureError, TrialFailedError
from tuneoff.run.trial.pool import Worker
from tuneoff.run.trial.run_trial import Decision
from tuneoff.run.trial.trial_process import Tickets
from tuneoff_adapters.optuna.plan import RETRY_ATTEMPT, RETRY_OF, STOPS_AT_GOAL, Broken, Finished, Order, StudyPlan
from tuneoff_adapters.optuna.pruners import make_pruner
from tuneoff_adapters.optuna.search import chosen, distributions, make_sampler
from tuneoff_adapters.optuna.server_errors import server_away
from tuneoff_adapters.optuna.study import Operations, open_study, quieten
from tuneoff_adapters.optuna.worker_state import WorkerStage, WorkerStateFile, died_at

log = logging.getLogger(__name__)

_INFRASTRUCTURE = (InfrastructureError, OSError)  # no trial's own error is among them here: `run_trial` keeps those
_FINISHED = getattr(exceptions, "UpdateFinishedTrialError", RuntimeError)  # of an update of a finished trial; since 4.3
_TAKEN_FOR_DEAD = "Optuna's heartbeat took the living trial for dead and failed it: its process was silent for two of them"


def work(worker: Worker, plan: StudyPlan) -> None:
    """Carry out orders from the pipe until it is closed."""
    quieten()
    if plan.is_in_pods:
        plan = replace(plan, folder=worker.context.run_dir, trials=0)
    asker: _Asker | None = None
    while (order := worker.pipe.recv()) is not None:
        answer: Finished | Broken
        try:
            if asker is None:
                storage = plan.storage  # in a job of SLURM its password is put in here
                worker_plan = replace(plan, storage=storage.at(storage.url)) if storage.is_shared else plan
                asker = _Asker(worker, worker_plan, order.generation)
            answer = asker.obey(order)
        except Exception as error:  # whatever Optuna or its storage raises ends the run, with its text
            log.exception("worker %d of Optuna broke", worker.index)
            cause = _cause(error)
            text = " ".join(f"{type(cause).__name__}: {cause}".split())
            is_infrastructure = isinstance(cause, _INFRASTRUCTURE)
            answer = Broken(text=f"worker {worker.index} met {text}", is_infrastructure=is_infrastructure)
        worker.answer(answer)


def _cause(error: BaseException) -> BaseException:
    """Return the fault of the infrastructure that an error came of, else the error: Optuna's own handling may fail of one."""
    return server_away(error) or next((cause for cause in origins(error) if isinstance(cause, _INFRASTRUCTURE)), error)


class _Asker:
    """One worker's study, sampler and pruner."""

    def __init__(self, worker: Worker, plan: StudyPlan, generation: int) -> None:
        self._worker, self._plan = worker, plan
        self._operations = Operations()
        sampler, pruner = make_sampler(plan, worker.index, generation), make_pruner(plan)
        stale = self._was_stale if plan.storage.heartbeat_seconds else None
        self._study = open_study(plan, sampler, pruner, self._operations, stale)
        self._distributions = distributions(plan.translation.native)
        self._asks = Tickets(plan.asks, plan.trials)
        self._process = worker.process
        self._events = self._process.events
        self._state_file = WorkerStateFile(plan.state_path(worker.index), plan.is_on_hosts)
        self._state = self._state_file.read()  # of a predecessor that died, or empty
        self._budget_over = False
        self._asking_ns = self._ended_ns = self._cpu_ns = 0

    def obey(self, order: Order) -> Finished:
        """Make the repeated asks, then ask for as long as there are tickets."""
        repeats = order.repeats
        while not (self._budget_over or self._process.budget.is_used_up()):
            if repeats > 0:
                repeats -= 1
            elif self._asks.take() is None:
                return Finished(budget_over=False)
            self._run_one()
            if self._worker.is_leaving and not self._budget_over:
                return Finished(budget_over=False, leaves=self._worker.index, repeats=repeats)
        return Finished(budget_over=True)

    def _run_one(self) -> None:
        """Run one trial from ask to tell. (`Study.tell` would do, but it copies the whole trial.)"""
        self._write_state(WorkerStage.ASKING)
        self._asking_ns, self._cpu_ns = clock.monotonic_ns(), time.process_time_ns()
        try:
            callbacks = None if self._plan.goal is None else [self._stop_at_goal]
            self._study.optimize(self._objective, n_trials=1, catch=(TrialFailedError,), callbacks=callbacks)
        except Exception as error:  # of the tell: how the trial ended in truth is written already
            # of a trial whose heartbeat has failed; Optuna's own handling asserts that this cannot be
            cause = error.__context__ if isinstance(error, AssertionError) else error
            is_of_heartbeat = isinstance(cause, _FINISHED) or str(cause) == "Cannot tell a FAIL trial."
            if not (self._plan.storage.heartbeat_seconds and is_of_heartbeat):
                raise
            log.warning("trial %s: %s", trial_name(self._state.trial), _TAKEN_FOR_DEAD)
        self._count_cpu()
        self._write_state(WorkerStage.IDLE)
        told_ns = clock.monotonic_ns()
        trial_id = trial_name(self._state.trial)
        self._events.write("stage", t=told_ns, name="tell", duration_ns=told_ns - self._ended_ns, trial=trial_id)

    def _objective(self, trial: Trial) -> float:
        """Return the trial's value: the best epoch's, so that Optuna's best trial is core's.

        Raises:
            TrialPruned: it was stopped.
            TrialFailedError: it failed, or core's budget did not let it run to its end.
        """
        configuration = chosen(trial, self._distributions, self._plan.translation)
        asked_ns = clock.monotonic_ns()
        self._count_cpu()
        number, attributes, state = trial.number, trial.user_attrs, self._state
        # The state comes before the event: a trial that nobody counted would make the budget overrun.
        state.number, state.trial = number, attributes.get(RETRY_OF, number)
        state.attempt = attributes.get(RETRY_ATTEMPT, 1)
        state.submitted += state.attempt == 1
        self._write_state(WorkerStage.SUBMITTING)
        trial_id = trial_name(state.trial)
        self._events.submitted(trial_id, configuration, str(number), state.attempt)
        self._write_state(WorkerStage.RUNNING)
        self._events.write("stage", t=asked_ns, name="ask", duration_ns=asked_ns - self._asking_ns, trial=trial_id)
        report = functools.partial(self._report, trial, trial_id)
        try:
            outcome = self._worker.run(trial_id, configuration, report, attempt=state.attempt, framework_id=str(number))
        finally:
            self._ended_ns, self._cpu_ns = clock.monotonic_ns(), time.process_time_ns()
        if outcome.state == "completed" and outcome.value is not None:
            self._state.value = outcome.value
            self._write_state(WorkerStage.COMPLETED)
            return outcome.value
        if outcome.state == "pruned":
            self._write_state(WorkerStage.PRUNED)
            raise TrialPruned
        self._write_state(WorkerStage.FAILED)
        self._budget_over = outcome.state in ("refused", "cancelled")
        raise TrialFailedError(outcome.cause or outcome.state)

    def _stop_at_goal(self, study: Study, trial: FrozenTrial) -> None:
        """Stop asking once the study has a trial that met the goal; the other workers see it after the trial that they run."""
        goal, sign = self._plan.goal or 0.0, 1 if self._plan.mode == "max" else -1
        completed = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        met = next((other for other in completed if sign * (other.value or 0.0) >= sign * goal), None)
        if met is not None:
            study.stop()
            self._budget_over = True
            self._events.write("goal_met", trial=trial_name(met.user_attrs.get(RETRY_OF, met.number)), by=STOPS_AT_GOAL)

    def _count_cpu(self) -> None:
        """Add what was used since `_cpu_ns` to what the storage costs this worker: in ask, report and tell."""
        self._state.cpu_ns += time.process_time_ns() - self._cpu_ns

    def _was_stale(self, study: Study, trial: FrozenTrial) -> None:
        """Time how long after a worker's death Optuna's heartbeat found its trial; who never died has no such file."""
        if (died_ns := died_at(self._plan.folder, trial.number)) is not None:
            self._events.write("stage", t=(now := clock.monotonic_ns()), name="heartbeat", duration_ns=now - died_ns)

    def _write_state(self, stage: WorkerStage) -> None:
        self._state.stage, self._state.operations = stage, self._state.operations + self._operations.count
        self._operations.count = 0
        self._state_file.write(self._state)

    def _report(self, trial: Trial, trial_id: str, epoch: int, metrics: Mapping[str, float]) -> Decision:
        """Report an epoch, and ask whether to stop, but not after the last epoch: there is nothing left to save."""
        self._cpu_ns = time.process_time_ns()
        try:
            try:
                trial.report(metrics[self._plan.metric], epoch)
            except _FINISHED as error:
                raise TrialFailedError(_TAKEN_FOR_DEAD) from error
            if self._plan.pruner.name == "none" or epoch >= self._plan.epochs or not trial.should_prune():
                return Decision.CONTINUE
            self._events.write("stop_decided", trial=trial_id, epoch=epoch)
            return Decision.STOP
        except Exception as error:
            raise server_away(error) or error from error.__cause__
        finally:
            self._count_cpu()
