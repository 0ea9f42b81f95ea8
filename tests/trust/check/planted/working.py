"""Defects in workers, threads, limits, and in the end of an interrupted run."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from dataclasses import replace

from trust.check.planted.base import Altered, PlannedTrial, Task
from trust.check.planted.recording import rewrite, whole_events, worker_files
from tuneoff.base.process_limits import SlotLimits
from tuneoff.base.processes import kill_from_outside
from tuneoff.platform import Death
from tuneoff.run.trial.pool import Worker, WorkerPool
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.serial import SerialAdapter

NO_PROCESSOR = 4095
OWN_SECONDS = 3.5
ITERATIONS = 200_000


class OneWorkerMore(Altered):
    """Runs one worker too many."""

    more_workers = 1

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        process = trial_process(worker.context)
        process.preferred_slot = worker.index % process.context.slots


class OneWorkerLess(Altered):
    """Leaves one of two workers without a trial."""

    @property
    def more_workers(self) -> int:  # type: ignore[override]
        return -1 if self.context.spec.experiment.workers.count > 1 else 0


class SeesOneDevice(Altered):
    """Gives all slots the device of the first one."""

    def deploy(self) -> None:
        context = self.context.trial_context
        replace(context, limits=tuple(replace(limits, device=context.limits[0].device) for limits in context.limits)).write()
        super().deploy()


class TwoThreads(Altered):
    """Computes in a second thread while a trial runs."""

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        done = threading.Event()
        thread = threading.Thread(target=_compute, args=(done,), daemon=True)
        thread.start()
        try:
            return trial.run()
        finally:
            done.set()
            thread.join()


def _compute(done: threading.Event) -> None:
    while not done.is_set():
        hashlib.pbkdf2_hmac("sha256", b"", b"", ITERATIONS)  # without the interpreter's lock, for many of its intervals


class OwnTimeLimit(Altered):
    """Ends trials that hang or are slow before their limit of time."""

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        limit = threading.Timer(OWN_SECONDS, kill_from_outside)
        if trial.configuration.get("act") in ("hang", "slow"):  # others take as long on a busy machine
            limit.start()
        try:
            return trial.run()
        finally:
            limit.cancel()


class RetriesOutOfMemory(SerialAdapter):
    """Tries again what took too much memory."""

    def _bury(self, death: Death, task: Task | None) -> Task | None:
        again = super()._bury(death, task)
        if task is None:
            return None
        if again is None and task.attempt == 1 and task.configuration.get("act") == "memory":
            return task._replace(attempt=2)
        return again


class PinsToNoProcessor(Altered):
    """Asks for a processor that is not there, so that trials run on any."""

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        process = trial_process(worker.context)
        known = process.context.limits or (SlotLimits(),) * process.context.slots
        process.context = replace(process.context, limits=tuple(replace(limits, processors=(NO_PROCESSOR,)) for limits in known))


class IgnoresInterruption(SerialAdapter):
    """When it is told to end it waits for its framework to do so, which never does."""

    def run_trials(self) -> None:
        told: list[int] = []
        before = signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
        super().run_trials()
        signal.signal(signal.SIGTERM, before)
        if told:
            time.sleep(3600)


class ForgetsOnInterruption(SerialAdapter):
    """Removes what an interrupted run has written of trials that had completed."""

    def undeploy(self) -> None:
        is_interrupted = self.undeploy_seconds < self.context.spec.experiment.timeouts.undeploy_seconds
        if is_interrupted and hasattr(self, "_pool"):
            assert isinstance(self._pool, WorkerPool)
            self._pool.close(grace_seconds=0)  # before the next trial completes
            for file in worker_files(self.context.run_dir):
                events = whole_events(file)
                completed = {event["trial"] for event in events if event["type"] == "trial_ended"}
                rewrite(file, [event for event in events if event.get("trial") not in completed])
        super().undeploy()


class PrunesOnInterruption(SerialAdapter):
    """Says of the trials that an interruption ended that they were pruned."""

    def setup(self) -> None:
        super().setup()
        self._running: dict[int, Task] = {}

    def _dispatch(self, worker: int, again: Task | None = None) -> Task | None:
        self._running.pop(worker, None)
        task = super()._dispatch(worker, again)
        if task is not None:
            self._running[worker] = task
        return task

    def undeploy(self) -> None:
        if self.undeploy_seconds < self.context.spec.experiment.timeouts.undeploy_seconds and hasattr(self, "_running"):
            for trial_id, _, attempt in self._running.values():
                end = {"trial": trial_id, "attempt": attempt, "state": "pruned", "epochs": 0}
                self.context.events.write("trial_ended", t=None, by="coordinator", **end)
            assert isinstance(self._pool, WorkerPool)
            self._pool.close(grace_seconds=0)
        super().undeploy()
