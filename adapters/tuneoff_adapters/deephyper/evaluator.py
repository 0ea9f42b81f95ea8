"""DeepHyper's evaluator of a run, and what its processes run; importing it imports DeepHyper."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import select
import signal
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from deephyper.evaluator import Evaluator, Job, JobStatus, RunningJob
from deephyper.evaluator.callback import SearchEarlyStopping

from tuneoff.base.identity import trial_name
from tuneoff.base.process_limits import die_with_parent
from tuneoff.base.processes import end_all, ended, kill_tree
from tuneoff.experiment.translation import Translation
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.children import hold_children, left_by
from tuneoff.run.trial.faults import Retries
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.run.trial.trial_process import TrialBudget, trial_process
from tuneoff_adapters.deephyper import STOPS_AT_GOAL

Answer = tuple[str, float | str]  # the state of a trial, and its objective (higher is better)
_context = functools.lru_cache(maxsize=1)(TrialContext.read)


def prepare_worker(coordinator: int, context_path: str, slot: int) -> None:
    """Make a process that was forked from the coordinator a worker: it dies with it, and imports what the workload names."""
    die_with_parent(parent=coordinator)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    context = _context(context_path)
    hold_children(context.execution_id)
    trial_process(context, slot=slot)


def train(job: RunningJob, context_path: str, trial_id: str, configuration: Mapping[str, Any], attempt: int) -> Answer:
    """Run an attempt at a trial in a worker, and return how it ended."""
    context = _context(context_path)
    sign = 1.0 if context.mode == "max" else -1.0

    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        job.record(epoch, sign * metrics[context.metric])
        if not job.stopped() or epoch >= context.epochs:  # after the last epoch it is always stopped
            return Decision.CONTINUE
        trial_process(context).events.write("stop_decided", trial=trial_id, epoch=epoch)
        return Decision.STOP

    outcome = run_trial(context, trial_id, configuration, report, attempt=attempt, framework_id=job.id)
    if outcome.state == "completed" and outcome.value is not None:
        return outcome.state, sign * outcome.value
    return outcome.state, job.objective if outcome.state == "pruned" else f"F_{outcome.state}"


class _Worker:
    """A pool of one process, which is forked at once."""

    def __init__(self, context: RunContext, slot: int) -> None:
        self._execution_id, self.executor = context.execution_id, ProcessPoolExecutor(max_workers=1)
        self.prepared = self.executor.submit(prepare_worker, os.getpid(), str(context.trial_context.path), slot)
        ((self.pid, self.process),) = self.executor._processes.items()
        self.pidfd = os.pidfd_open(self.pid)

    def end(self) -> None:
        """End the process, and what it started: that may hold the pipe by whose end the pool learns of a death."""
        if self.process.is_alive():
            kill_tree(self.pid)
            select.select([self.pidfd], [], [])  # while it ends, its group may be taken for another's
        end_all(lambda: left_by(self._execution_id, self.pid))
        self.executor.shutdown()
        os.close(self.pidfd)


class GoalCallback(SearchEarlyStopping):  # type: ignore[misc]
    """Stops the search once a completed trial has met the goal; DeepHyper stops beyond its threshold, not at it."""

    def __init__(self, context: RunContext) -> None:
        objective, self._events = context.spec.experiment.objective, context.events
        goal = (objective.goal or 0.0) * (1 if objective.mode == "max" else -1)
        super().__init__(0, objective_func=_completed, threshold=math.nextafter(goal, -math.inf), verbose=False)

    def on_done(self, job: Job) -> None:
        was_stopped = self.search_stopped
        super().on_done(job)
        if self.search_stopped and not was_stopped:
            self._events.write("goal_met", trial=job.metadata["trial"], by=STOPS_AT_GOAL)


def _completed(job: Job) -> float:
    return float(job.objective) if job.metadata.get("state") == "completed" else -math.inf


class TrialEvaluator(Evaluator):  # type: ignore[misc]
    """Runs jobs in forked processes, as ProcessPoolEvaluator does, but the death of one fails its own trial alone."""

    def __init__(self, context: RunContext, translation: Translation, storage: Any) -> None:
        workers = context.spec.experiment.workers.count
        callbacks = [GoalCallback(context)] if context.spec.experiment.objective.stop else []
        super().__init__(train, num_workers=workers, storage=storage, callbacks=callbacks)
        self._context, self._translation, self._budget = context, translation, TrialBudget(context.trial_context)
        self._retries = Retries(context.trial_context, context.spec.experiment.failures.retries)
        self._workers: dict[int, _Worker] = {}
        self._idle = list(range(workers))
        self.configurations: dict[str, Mapping[str, Any]] = {}

    def start(self) -> None:
        """Start the workers: at the return each could take a trial."""
        for slot in self._idle:
            self._workers[slot] = _Worker(self._context, slot)
        for worker in self._workers.values():
            worker.prepared.result()

    def end(self) -> None:
        """End the workers; idempotent."""
        while self._workers:
            self._workers.popitem()[1].end()

    async def execute(self, job: Job) -> Job:
        async with self.sem:
            job.status = JobStatus.RUNNING
            trial_id, slot = trial_name(int(job.id.rpartition(".")[2])), self._idle.pop()
            self.configurations[trial_id] = self._translation.decode(job.args)
            state, objective = await self._run(job, trial_id, slot)
            self._idle.append(slot)
            return self._update_job_when_done(job, {"objective": objective, "metadata": {"trial": trial_id, "state": state}})

    async def _run(self, job: Job, trial_id: str, slot: int) -> Answer:
        """Run a trial's attempts in a worker, in whose place another one starts after each death."""
        configuration, path = self.configurations[trial_id], str(self._context.trial_context.path)
        for attempt in itertools.count(1):
            worker, task = self._workers[slot], (job.create_running_job(self._stopper), path, trial_id, configuration, attempt)
            self._context.submitted(trial_id, configuration, job.id, attempt)
            self.loop.add_reader(worker.pidfd, self._died, worker)
            with contextlib.suppress(BrokenProcessPool):
                answer: Answer = await self.loop.run_in_executor(worker.executor, train, *task)
                self.loop.remove_reader(worker.pidfd)
                return answer
            self._died(worker)
            self._workers[slot], code = _Worker(self._context, slot), worker.process.exitcode
            cause = f"worker process {worker.pid} {ended(code or 0)}"
            self._context.events.write("worker_died", trial=trial_id, cause=cause, exit_code=code, attempt=attempt)
            if not self._retries.may_retry(trial_id, attempt, code, slot) or self._budget.is_used_up():
                break
        return "failed", "F_died"

    def _died(self, worker: _Worker) -> None:
        if self.loop.remove_reader(worker.pidfd):  # else it was ended at the first sign of its death
            worker.end()
