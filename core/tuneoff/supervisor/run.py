"""Supervise one run from its start to its record."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tuneoff import clock
from tuneoff.events.schema import Charged
from tuneoff.events.tail import Tail
from tuneoff.events.writer import FOLDER as EVENTS
from tuneoff.events.writer import EventWriter
from tuneoff.experiment.spec import RunSpec
from tuneoff.lifecycle.context import remember
from tuneoff.lifecycle.run import DONE, INTERRUPTED
from tuneoff.matrix.listener import Listener
from tuneoff.supervisor.cgroups import make_memory_cgroups
from tuneoff.supervisor.coordinator import LOG, Coordinator
from tuneoff.supervisor.leftovers import clean_execution, shared_memory, unmapped
from tuneoff.supervisor.prepare import Execution, new_execution, write_inputs
from tuneoff.supervisor.processes import command_line, kill, reap
from tuneoff.supervisor.tracker import Tracker
from tuneoff.supervisor.watch import TrialWatch

POLL_SECONDS = 0.1
UNDEPLOY_GRACE_SECONDS = 15.0  # from SIGTERM to SIGKILL
INTERRUPT_GRACE_SECONDS = 8.0  # the same after Ctrl-C, so that a fresh un-deploy still fits into 15 s
EXIT_GRACE_SECONDS = 3.0  # for processes that end by themselves once their coordinator is gone

Status = Literal["done", "failed", "timeout", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervised:
    """How an execution ended, as its supervisor saw it."""

    execution: Execution
    status: Status
    reason: str | None
    charged: Charged | None
    limits: Mapping[str, Any]  # what was in force


@dataclass(slots=True, kw_only=True)
class _Stop:
    """Why the supervisor ends a run before its own end."""

    status: Status
    reason: str
    charged: Charged
    grace_seconds: float = UNDEPLOY_GRACE_SECONDS


def supervise(
    spec: RunSpec,
    results: Path,
    listener: Listener,
    interrupt: threading.Event,
    notes: Sequence[tuple[str, str]] = (),
) -> Supervised:
    """Run one execution of `spec` under `results` and return how it ended; nothing of it is left afterwards.

    `interrupt` may be set at any time (by a signal handler): the run un-deploys and ends as `interrupted`. `notes` are
    flags (name, text) for the record.
    """
    execution = new_execution(spec, results / "runs")
    temporary = _temporary_folder(execution)
    cgroups, memory = make_memory_cgroups(execution)
    context = write_inputs(execution, cgroups)
    events = EventWriter(execution.folder, execution.execution_id, "supervisor")
    for name, text in notes:
        events.flag(name, text)
    memory_before = shared_memory()
    supervision = _Supervision(execution, results, temporary, listener, interrupt, events, context.memory_bytes, cgroups)
    try:
        status, reason, charged = supervision.run()
    finally:
        supervision.clean_up(memory_before)
        shutil.rmtree(temporary, ignore_errors=True)
        for problem in clean_execution(execution.folder):
            events.flag("left_behind", problem)
        events.sync()
        events.close()
        reap()
    limits = {"memory": memory, "threads": context.threads, "trial_seconds": spec.experiment.timeouts.trial_seconds}
    return Supervised(execution=execution, status=status, reason=reason, charged=charged, limits=limits)


class _Supervision:
    def __init__(
        self,
        execution: Execution,
        results: Path,
        temporary: Path,
        listener: Listener,
        interrupt: threading.Event,
        events: EventWriter,
        memory_bytes: int | None,
        cgroups: list[str],
    ) -> None:
        self._execution, self._results, self._temporary = execution, results, temporary
        self._listener, self._interrupt, self._events = listener, interrupt, events
        self._tail = Tail(execution.folder / EVENTS)
        self._tracker = Tracker(experiment=execution.spec.experiment, run_id=execution.spec.run_id)
        self._watch = TrialWatch(execution, events, memory_bytes, cgroups)
        self._coordinator = Coordinator(execution, results, temporary)

    def run(self) -> tuple[Status, str | None, Charged | None]:
        """Return (status, reason, who is charged)."""
        stop: _Stop | None = None
        asked_ns = 0
        while (code := self._coordinator.wait(POLL_SECONDS)) is None:
            self._look()
            now = clock.monotonic_ns()
            if stop is None:
                stop = self._reason_to_stop(now)
                if stop is not None:
                    asked_ns = now
                    self._coordinator.ask_to_end()
            elif now - asked_ns > stop.grace_seconds * clock.NANOSECONDS:
                self._coordinator.kill_all()
        self._look()
        if not self._tracker.undeployed:
            self._coordinator.kill_all()
            self._undeploy_in_fresh_process(stop.grace_seconds if stop else UNDEPLOY_GRACE_SECONDS)
        if stop is not None:
            return stop.status, stop.reason, stop.charged
        return self._verdict(code)

    def clean_up(self, memory_before: set[str]) -> None:
        """End what outlived the coordinator, flag it, and write the end of trials that nobody wrote."""
        for pid in self._coordinator.survivors(EXIT_GRACE_SECONDS):
            self._events.flag("left_behind", f"process {pid}: {command_line(pid)}")
            kill(pid)
        self._coordinator.kill_all()
        self._coordinator.close()
        self._take_events()
        self._watch.bury_all(self._tracker)
        for name in sorted(unmapped(shared_memory() - memory_before)):
            self._events.flag("left_behind", f"shared memory /dev/shm/{name} (of this user; not certainly of this run)")
        for problem in self._tail.problems:
            self._events.flag("unreadable_event", problem)

    def _look(self) -> None:
        self._take_events()
        self._watch.look(self._tracker)
        self._listener.run_progress(self._tracker.live(clock.monotonic_ns()))

    def _take_events(self) -> None:
        for process, event in self._tail.poll():
            self._tracker.take(process, event)

    def _reason_to_stop(self, now: int) -> _Stop | None:
        if self._interrupt.is_set():
            return _Stop(status="interrupted", reason="interrupted", charged="user", grace_seconds=INTERRUPT_GRACE_SECONDS)
        tracker, experiment = self._tracker, self._execution.spec.experiment
        if tracker.step_started_ns is not None:
            limit = _step_limit(experiment.timeouts, tracker.step)
            if now - tracker.step_started_ns > limit * clock.NANOSECONDS:
                reason = f"step {tracker.step} took longer than {limit:g} s"
                return _Stop(status="timeout", reason=reason, charged="framework")
        most = experiment.failures.max_failed_trials
        failed = tracker.counts.get("failed", 0)
        if most is not None and failed > most:
            reason = f"{failed} trials failed, more than failures.max_failed_trials={most}"
            return _Stop(status="failed", reason=reason, charged="workload")
        return None

    def _undeploy_in_fresh_process(self, grace_seconds: float) -> None:
        fresh = Coordinator(self._execution, self._results, self._temporary, undeploy=True)
        try:
            if fresh.wait(grace_seconds) is None:
                self._events.flag("left_behind", "un-deploy in a fresh process did not end in time")
            fresh.kill_all()
        finally:
            fresh.close()
        self._take_events()

    def _verdict(self, code: int) -> tuple[Status, str | None, Charged | None]:
        tracker = self._tracker
        if code == INTERRUPTED:
            return "interrupted", "the coordinator was told to end by someone else", "infrastructure"
        if tracker.step_error is not None:
            step, text, charged = tracker.step_error
            return "failed", f"step {step} failed: {text}", charged
        if code != DONE:
            reason = f"the coordinator ended with exit code {code} in step {tracker.step}; see {LOG} in its folder"
            return "failed", reason, "infrastructure"
        if tracker.best_trial is None:
            return "failed", "no trial completed", "workload"
        if not tracker.tested:
            return "failed", "the best trial was not tested", "framework"
        return "done", None, None


def _step_limit(timeouts: Any, step: str) -> float:
    name = {"trial": "trials_seconds"}.get(step, f"{step}_seconds")
    return float(getattr(timeouts, name))


def _temporary_folder(execution: Execution) -> Path:
    """Make a folder with a short path (Ray's sockets: 107 bytes), remembered before it exists."""
    while True:
        path = Path(tempfile.gettempdir()) / f"tuneoff-{execution.execution_id[-6:]}"
        remember(execution.folder, "folder", str(path))
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
