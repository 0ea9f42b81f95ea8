"""Limits on trials, the same for every adapter: time, silence, memory; and the end of trials whose process died.

Trials in pods are left alone: their processes are on another machine, or hidden behind what stands in for one; their adapter
keeps the limits and writes the ends. Of trials on other hosts that write into the run's own folder the adapter sees the deaths,
and kills what it is asked to.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence

from tuneoff.base import clock, processes
from tuneoff.base.layout import IN_PODS
from tuneoff.record.events.schema import Charged, Limit, Process
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.progress import OpenAttempt, Tracker
from tuneoff.run.supervisor.execution import Execution
from tuneoff.run.trial.children import left_by
from tuneoff.run.trial.faults import ask_kill, has_more_memory_there, note_kill, out_of_memory_cause, out_of_memory_kills

SETTLE_NS = 300_000_000  # a process that is gone gets so long for its own last lines, and its adapter for what it knows

# In a control group the kernel has the first turn: it counts only what was allocated since the process entered, so a process
# may be above the limit here before it is there. It cannot get further above than what it held when it entered.
KERNEL_NS = 1_000_000_000


class TrialWatch:
    """Looks at the open attempts, several times a second; `take_events` lets their tracker read what is new."""

    def __init__(
        self,
        execution: Execution,
        events: EventWriter,
        memory_bytes: int | None,
        cgroups: Sequence[str],
        tracker: Tracker,
        take_events: Callable[[], None],
    ) -> None:
        self._execution_id = execution.execution_id
        self._folder, self._events, self._memory, self._cgroups = execution.folder, events, memory_bytes, cgroups
        self._tracker, self._take_events = tracker, take_events
        self._timeouts = execution.spec.experiment.timeouts
        self._epochs = execution.spec.experiment.budget.epochs_per_trial
        self._oom_seen = [0] * len(cgroups)
        self._exits = ExitClock()
        self._boot_id = clock.boot_id()

    def look(self) -> None:
        """Write the exits of processes, kill what is over a limit, and write the end of what has died."""
        now = clock.monotonic_ns()
        self._write_exits()
        for attempt in list(self._tracker.open.values()):
            if attempt.role in IN_PODS:
                continue
            if attempt.gone_since_ns is not None:
                if now - attempt.gone_since_ns > SETTLE_NS:
                    self._write_end(attempt, now)
            elif not (self._is_elsewhere(attempt) or processes.is_alive(attempt.pid, attempt.process_started_ns)):
                self._is_gone(attempt, now)
            elif not attempt.killed:
                self._limit(attempt, now)

    def bury_all(self) -> None:
        """Write the end of every attempt that is still open; called when all processes of the run are gone."""
        self._exits.close()
        self._write_exits()
        for attempt in list(self._tracker.open.values()):
            now = clock.monotonic_ns()
            if attempt.gone_since_ns is None and attempt.role not in IN_PODS:
                self._is_gone(attempt, now)
            self._write_end(attempt, now)

    def _limit(self, attempt: OpenAttempt, now: int) -> None:
        timeouts = self._timeouts
        # the kernel ends one process of a group, which may be a child of the trial's: without it the trial may go on, or hang.
        # At the first look it is not known whether that was a child of this trial or of the one before it on the slot.
        is_first_look, attempt.seen_ns = attempt.seen_ns is None, None if self._is_elsewhere(attempt) else now
        if self._has_killed(attempt.slot) and not is_first_look:
            self._kill(attempt, "memory", self._by_the_kernel())
            return
        if now - attempt.started_ns > timeouts.trial_seconds * clock.NANOSECONDS:
            self._kill(attempt, "time", f"timed out: longer than {timeouts.trial_seconds:g} s")
        elif now - attempt.last_event_ns > timeouts.silence_seconds * clock.NANOSECONDS:
            cause = f"timed out: silent for {timeouts.silence_seconds:g} s"
            if attempt.in_report:
                self._kill(attempt, "time", f"{cause} in the framework's report", "framework")
            else:
                self._kill(attempt, "time", cause)
        elif self._memory is not None and self._has_more(attempt, self._memory):
            attempt.over_memory_since_ns = attempt.over_memory_since_ns or now
            if attempt.slot >= len(self._cgroups) or now - attempt.over_memory_since_ns > KERNEL_NS:
                self._kill(attempt, "memory", out_of_memory_cause(self._memory, "watchdog"))
        else:
            attempt.over_memory_since_ns = None

    def _is_elsewhere(self, attempt: OpenAttempt) -> bool:
        return attempt.boot_id != self._boot_id

    def _by_the_kernel(self) -> str:
        return out_of_memory_cause(self._memory, "control group")

    def _has_more(self, attempt: OpenAttempt, limit: int) -> bool:
        if self._is_elsewhere(attempt):
            process, name = (attempt.boot_id, attempt.pid, attempt.process_started_ns), (attempt.trial, attempt.attempt)
            return has_more_memory_there(self._folder, *process, limit, name)
        return processes.has_more_memory(attempt.pid, limit)

    def _kill(self, attempt: OpenAttempt, limit: Limit, cause: str, charged: Charged = "workload") -> None:
        """Kill an attempt's processes, unless it has ended since the last event read: its process may be at the next trial."""
        is_elsewhere = self._is_elsewhere(attempt)
        if not is_elsewhere:
            processes.stop([attempt.pid])
        self._take_events()
        if self._tracker.open.get((attempt.trial, attempt.attempt)) is not attempt:
            if not is_elsewhere:
                processes.kill(attempt.pid, signal.SIGCONT)
            return
        attempt.killed = True
        note_kill(self._folder, attempt.trial, attempt.attempt, cause)
        self._announce(attempt, limit, cause, charged)
        if is_elsewhere:
            process = attempt.boot_id, attempt.pid, attempt.process_started_ns
            ask_kill(self._folder, *process, (attempt.trial, attempt.attempt))
        else:
            processes.kill_tree(attempt.pid)

    def _announce(self, attempt: OpenAttempt, limit: Limit, cause: str, charged: Charged = "workload") -> None:
        self._events.write(
            "trial_killed", trial=attempt.trial, attempt=attempt.attempt, cause=cause, charged=charged, limit=limit
        )

    def _is_gone(self, attempt: OpenAttempt, now: int) -> None:
        """Note the death, and at once whether the kernel caused it: the next trial on the slot may be its next victim."""
        attempt.gone_since_ns = now
        if not self._is_elsewhere(attempt):
            processes.end_all(lambda: left_by(self._execution_id, attempt.pid, attempt.process_started_ns))
        attempt.killed_by_kernel = self._has_killed(attempt.slot)

    def _write_end(self, attempt: OpenAttempt, now: int) -> None:
        if attempt.killed_by_kernel and not attempt.killed:
            self._announce(attempt, "memory", self._by_the_kernel())
        state = "failed"  # without a cause: a kill that was announced, or what the adapter saw, tells it
        if attempt.epochs >= self._epochs:
            state = "completed"
        elif attempt.stop_epoch is not None and not attempt.killed:
            state = "pruned"
        since = attempt.gone_since_ns or now
        uncertainty_ns = max(0, since - max(attempt.last_event_ns, attempt.seen_ns or 0))
        self._events.write(
            "trial_ended",
            t=since,
            trial=attempt.trial,
            attempt=attempt.attempt,
            state=state,
            epochs=attempt.epochs,
            by="supervisor",
            uncertainty_ns=0 if attempt.role in IN_PODS else uncertainty_ns,  # a pod's events may have another clock's times
        )

    def _write_exits(self) -> None:
        """Write when processes of one trial each were gone, where they were seen to live: else nothing is known.

        A pod's process is among them where it runs on this kernel under the pid that it has itself.
        """
        for process in self._tracker.arrived:
            if process.boot_id == self._boot_id:
                self._exits.watch(process)
        self._tracker.arrived.clear()
        while self._exits.gone:
            process, gone_ns = self._exits.gone.popleft()
            self._events.write("process_exited", t=gone_ns, process=process.name)

    def _has_killed(self, slot: int) -> bool:
        """Tell whether the kernel has killed in a slot's control group since this was last asked."""
        if slot >= len(self._cgroups):
            return False
        count = out_of_memory_kills(self._cgroups[slot])
        grew = count > self._oom_seen[slot]
        self._oom_seen[slot] = count
        return grew


class ExitClock:
    """Notes when each watched process ended, to some milliseconds (a thread waits; it starts with the first process).

    A process that had ended before it was watched gets no reading: a guess is none.
    """

    def __init__(self) -> None:
        self._poll: select.epoll | None = None
        self._end = -1
        self._thread: threading.Thread | None = None
        self._watched: dict[int, Process] = {}  # by pidfd
        self.gone: deque[tuple[Process, int]] = deque()  # and when (monotonic, nanoseconds); who reads them takes them out

    def watch(self, process: Process) -> None:
        """Watch a process from now on, if it lives."""
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:  # it is gone, or this kernel has no such call
            return
        if not processes.is_alive(process.pid, process.process_started_ns):
            os.close(descriptor)
            return
        self._watched[descriptor] = process
        if self._poll is None:
            self._poll, self._end = select.epoll(), os.eventfd(0)
            self._poll.register(self._end, select.EPOLLIN)
            self._thread = threading.Thread(target=self._wait, args=(self._poll,), name="exits", daemon=True)
            self._thread.start()
        self._poll.register(descriptor, select.EPOLLIN)

    def close(self) -> None:
        """Stop watching; the readings stay."""
        if self._poll is None or self._thread is None:
            return
        os.eventfd_write(self._end, 1)
        self._thread.join()
        self._poll.close()
        for descriptor in (self._end, *self._watched):
            os.close(descriptor)
        self._watched.clear()
        self._poll = None

    def _wait(self, poll: select.epoll) -> None:
        while True:
            ready = poll.poll()
            now = clock.monotonic_ns()
            for descriptor, _ in ready:
                if descriptor == self._end:
                    continue
                self.gone.append((self._watched.pop(descriptor), now))
                with contextlib.suppress(OSError):
                    poll.unregister(descriptor)
                os.close(descriptor)
            if any(descriptor == self._end for descriptor, _ in ready):
                return
