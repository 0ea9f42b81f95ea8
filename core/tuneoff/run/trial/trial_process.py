"""What the processes of a run share (slots, the budget), and what each keeps between its trials, and uses.

It keeps its event file, its slot, the budget, the workload's imports; it uses CPU time, that of its children too, and memory.
Shared are locks and counters: `flock` on small files, which die with their holder.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from tuneoff.base import clock
from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.layout import SLOTS
from tuneoff.base.process_limits import VISIBLE, seeing
from tuneoff.base.process_state import TrainingState
from tuneoff.base.processes import children, stat_fields
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.trial.children import own_children
from tuneoff.run.trial.own_end import OwnEnd
from tuneoff.workload import workload_at

_CPUCLOCK_SCHED = 2  # of another process: clockid (~pid << 3) | 2, nanoseconds of all its threads (clock_getcpuclockid(3))


class Slots:
    """The `count` places of a run. A process holds a slot by an exclusive lock on its file; a killed one frees it.

    `devices`: the accelerator of each slot. A process sees one for good, by its environment: that of its starter, else, from
    its first slot on, that slot's; it takes slots of that one alone.
    """

    def __init__(self, run_dir: Path | str, count: int, devices: Sequence[int] = ()) -> None:
        folder = Path(run_dir) / SLOTS
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [os.open(folder / str(i), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for i in range(count)]
        self._reserved: tuple[int, int] | None = None
        self._devices = devices
        seen = self._seeing(os.environ.get(VISIBLE))
        self._decides = bool(devices) and not seen
        self._usable = seen or range(count)

    def reserve(self, preferred: int = 0) -> None:
        """Take a slot for the next `take` if one is free; waits only where it decides on the accelerator.

        Raises:
            TimeoutError: as `take`.
        """
        if not self._decides:
            slot = self._try(preferred)
            self._reserved = None if slot is None else (slot, 0)
            return
        self._reserved, self._decides = self.take(preferred=preferred), False
        os.environ.update(seeing([self._devices[self._reserved[0]]]))
        self._usable = self._seeing(os.environ[VISIBLE])

    def _seeing(self, visible: str | None) -> Sequence[int]:
        return [slot for slot, device in enumerate(self._devices) if str(device) == visible]

    def take(self, timeout_seconds: float = 60.0, preferred: int = 0) -> tuple[int, int]:
        """Return (slot, nanoseconds waited): the reserved slot, else the preferred one if it is free, else the lowest free one.

        Raises:
            TimeoutError: no slot became free: more than `workers.count` trials overlap.
        """
        reserved, self._reserved = self._reserved, None
        if reserved is not None:
            return reserved
        started = clock.monotonic_ns()
        was_free = True  # at the first look: whatever time that took on a busy machine, nobody was waited for
        while (slot := self._try(preferred)) is None:
            was_free = False
            if clock.monotonic_ns() - started > timeout_seconds * clock.NANOSECONDS:
                raise TimeoutError(f"no free slot of {len(self._files)} within {timeout_seconds:g} s")
            time.sleep(0.002)
        return slot, 0 if was_free else clock.monotonic_ns() - started

    def _try(self, preferred: int) -> int | None:
        for slot in sorted(self._usable, key=lambda slot: slot != preferred):
            try:
                fcntl.flock(self._files[slot], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return slot
        return None

    def free(self, slot: int) -> None:
        fcntl.flock(self._files[slot], fcntl.LOCK_UN)

    def close(self) -> None:
        for descriptor in self._files:
            os.close(descriptor)


class Tickets:
    """A budget shared by processes: at most `limit` tickets are ever taken, whatever the callers do.

    The file holds one line per ticket, the monotonic time of its taking, so the first line is when the budget was first used.
    """

    _LINE = 21  # 20 digits and a newline

    def __init__(self, path: Path | str, limit: int | None) -> None:
        self.limit = limit
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def take(self) -> int | None:
        """Return the number of the ticket taken, counted from 0, or None where none is left."""
        if self.limit is None:
            return 0
        with Locked(self._fd):
            number = os.fstat(self._fd).st_size // self._LINE
            if number >= self.limit:
                return None
            os.pwrite(self._fd, b"%020d\n" % clock.monotonic_ns(), number * self._LINE)
        return number

    def give_back(self) -> None:
        """Return one ticket that its taker did not use."""
        if self.limit is not None:
            with Locked(self._fd):
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - self._LINE)

    @property
    def taken(self) -> int:
        return os.fstat(self._fd).st_size // self._LINE

    @property
    def first_ns(self) -> int | None:
        """Return when the first ticket was taken (monotonic nanoseconds), or None."""
        line = os.pread(self._fd, self._LINE, 0)
        return int(line) if len(line) == self._LINE else None

    def close(self) -> None:
        os.close(self._fd)


class Locked:
    """Holds an exclusive flock for a block."""

    def __init__(self, descriptor: int) -> None:
        self._fd = descriptor

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)


class TrialBudget:
    """Trials, epochs in total and seconds of one run, and the goal at which core ends it, as any of its processes sees them.

    `run_trial` enforces it. An adapter asks `is_used_up` before it proposes a trial, because every further one would be
    refused or cancelled.
    """

    def __init__(self, context: TrialContext) -> None:
        self.tickets = Tickets(f"{context.run_dir}/tickets", context.trials)
        self.epoch_tickets = Tickets(f"{context.run_dir}/epoch_tickets", context.epochs_total)
        self._wall_clock_seconds = context.wall_clock_seconds
        self._deadline_ns: int | None = None
        self._goal, self._is_max = context.goal, context.mode == "max"
        self._goal_file = f"{context.run_dir}/goal"  # there once it is met

    def is_used_up(self) -> bool:
        """Tell whether the budget of seconds or of epochs is used up, or the goal met. (Trials: who proposes counts them.)"""
        limit = self.epoch_tickets.limit
        if self._goal is not None and os.path.exists(self._goal_file):
            return True
        return self.is_over_time() or (limit is not None and self.epoch_tickets.taken >= limit)

    def note_goal(self, events: EventWriter, trial_id: str, value: float | None) -> None:
        """End the run where a completed trial's value is the first that meets the goal at which core ends it.

        The event comes first: without it the run would have ended early for nothing.
        """
        if self._goal is None or value is None or (value < self._goal if self._is_max else value > self._goal):
            return
        if not os.path.exists(self._goal_file):
            events.write("goal_met", trial=trial_id)
            os.close(os.open(self._goal_file, os.O_CREAT | os.O_CLOEXEC, 0o644))

    def is_over_time(self) -> bool:
        """Tell whether the wall-clock budget is used up: counted from the first ticket of the run."""
        if self._wall_clock_seconds is None:
            return False
        if self._deadline_ns is None:
            first = self.tickets.first_ns
            if first is None:
                return False
            self._deadline_ns = first + int(self._wall_clock_seconds * clock.NANOSECONDS)
        return clock.monotonic_ns() > self._deadline_ns

    def close(self) -> None:
        self.tickets.close()
        self.epoch_tickets.close()


class TrialProcess:
    """What a process keeps between trials of one run: its event file (`events`: an EventWriter), the slots, the budget
    (`budget`: a TrialBudget).

    It reserves a slot before the imports that its trials need: processes that are started together do not end up on one slot.
    """

    def __init__(self, context: TrialContext, role: str, slot: int = 0) -> None:
        self.context = context
        self.events = EventWriter(context.run_dir, context.execution_id, role, to_stdout=context.events_to_stdout)
        self.slots = Slots(context.run_dir, context.slots, context.devices)
        self.slots.reserve(slot)
        self.budget = TrialBudget(context)
        self.preferred_slot = slot
        self.is_replaceable = False  # it ends after a trial, or where it is spent
        self.is_spent = False  # a training has kept processes, which the next trial cannot have as a fresh process would
        self.training = TrainingState(context.workload, context.folder, context.umask)
        self.own_end = OwnEnd()
        with self.training.entered(), self.own_end.noted(None):  # for a module that keeps the functions by name
            _preload(context)
        self.imported_ns: int | None = clock.monotonic_ns()
        self._limited_as: int | None = None

    def enter(self, slot: int) -> None:
        """Put this process under the limits of a slot, and prefer it from now on: limits need not change then."""
        self.preferred_slot = slot
        if self.context.limits and self._limited_as != slot:
            self._limited_as = slot
            for name, problem in self.context.limits[slot].put_in_force():
                self.events.flag(name, problem)

    def close(self) -> None:
        self.events.close()
        self.slots.close()
        self.budget.close()


def _preload(context: TrialContext) -> None:
    """Import what the workload needs before the first trial starts: imports are overhead, never load time of a trial."""
    try:
        for module in workload_at(context.workload, is_training=True).preload:
            importlib.import_module(module)
    except Exception as error:  # whatever is broken: the trial that needs it fails with the reason
        import logging  # nothing else in a trial's process needs it

        logging.getLogger(__name__).warning("the workload's imports failed: %s", error)


_made: dict[tuple[str, int, str, str], TrialProcess] = {}  # at most one


def trial_process(context: TrialContext, role: str = "worker", slot: int = 0) -> TrialProcess:
    """Return this process's state for a run, made at its first use: call it before the process's imports.

    `slot`: the one that it prefers when it is made.
    """
    key = context.execution_id, os.getpid(), role, context.run_dir
    if key not in _made:
        while _made:
            _made.popitem()[1].close()  # its reserved slot is free again
        _made[key] = TrialProcess(context, role, slot)
    return _made[key]


class CpuClock:
    """CPU time from now on, of this process and of the processes that it starts."""

    def __init__(self) -> None:
        self.started_ns = process_tree_cpu_ns()  # used before

    def used_ns(self) -> int:
        """Return the CPU time since the clock was made, in nanoseconds; about 2 us where the process has no children."""
        return max(0, process_tree_cpu_ns() - self.started_ns)


def process_tree_cpu_ns() -> int:
    """Return the CPU time of this process, of the children that it waited for, and of those that live or are zombies, in ns.

    A child's time only moves from the last part to the second when it is waited for, so differences of two readings are
    exact. One whose parent ended first is a child of this process, where that holds its children.
    """
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time_ns() + round((waited.ru_utime + waited.ru_stime) * NANOSECONDS)
    total += sum(map(tree_cpu_ns, own_children()))
    return total


def peak_rss_bytes() -> int:
    """Return the largest resident memory that this process had since it began its program.

    `ru_maxrss` would do, but on Linux it survives `exec`: a small process started by a large one has the large one's peak.
    """
    with contextlib.suppress(OSError, ValueError):  # no such file system here, or no such line
        descriptor = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)  # bare calls: half of what a file object takes
        try:
            text = os.read(descriptor, 8192)
        finally:
            os.close(descriptor)
        start = text.index(b"VmHWM:") + len(b"VmHWM:")
        return int(text[start : text.index(b"kB", start)]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tree_cpu_ns(pid: int) -> int:
    """Return the CPU time of a process, of those that it waited for, and of those below it, in ns; 0: it is gone."""
    total = 0
    with contextlib.suppress(OSError):  # it was reaped meanwhile: by the next reading it is among those waited for
        total = time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
        waited_ticks = sum(map(int, (stat_fields(pid) or ())[13:15]))
        total += waited_ticks * NANOSECONDS // os.sysconf("SC_CLK_TCK")
    return total + sum(map(tree_cpu_ns, children(pid)))
