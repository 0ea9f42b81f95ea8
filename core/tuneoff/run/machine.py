"""The contamination guard: is the machine in order, and the same as before? Looked at before each run: flagged, never blocked.

What other programs use *during* a run is not known then: that is the flag `disturbed`, from the run's own samples.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tuneoff.base import clock
from tuneoff.base.processes import command_line, with_mark
from tuneoff.measure.power.procfs import HostClock
from tuneoff.measure.use import DISTURBED, LARGEST_SHARE, TICKS_SECONDS
from tuneoff.record.environment import memory
from tuneoff.run.supervisor.leftovers import RESULTS_MARK

PROC, SYS = Path("/proc"), Path("/sys")
CPUS = "devices/system/cpu"
CLOCK_SOURCE = "devices/system/clocksource/clocksource0/current_clocksource"
LOOK_NS = 400_000_000  # several sentinels: of the best one no interrupt is a part
DRIFT_LIMIT = 1.25  # of the sentinel's time over the fastest of the folder
LEAST_MEMORY, LEAST_SHARE = 1_000_000_000, 0.1  # bytes, and of the machine's memory: below both there is too little
LEAST_DISK = 1_000_000_000
SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})  # µs per reading, or coarse
_BLOCK = bytes(1 << 20)

# of the look before a run, and of throttling in it
FLAGS = frozenset(
    {
        "machine_drift",
        "machine_changed",
        "earlier_survivor",
        "low_memory",
        "low_disk",
        "cpu_throttled",
        "slow_clock_source",
        "frequency_limited",
    }
)
# what may be otherwise in a repetition, with what the run's samples tell; the others belong to the machine as it is
PASSING = (FLAGS - {"slow_clock_source", "frequency_limited"}) | {DISTURBED}


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """The machine before a run; None where the system does not tell.

    `sentinel_ns`: CPU time of SHA-256 of 32 MiB on one core, the best of the look: the calibration, without the time in which
    others had the core. `throttle_count`: since the machine's start.
    """

    load_1min: float
    sentinel_ns: Annotated[int, msgspec.Meta(gt=0)]
    memory_available_bytes: int | None = None
    memory_total_bytes: int | None = None
    disk_free_bytes: int | None = None  # the results folder's
    temporary_free_bytes: int | None = None  # the temporary folder's
    throttle_count: int | None = None
    clock_source: str | None = None
    governor: str | None = None
    frequency_limit: float | None = None  # least share of its maximum frequency that a processor may reach
    others_percent: float | None = None  # at least so much others used of this command's processors during the look
    survivors: tuple[str, ...] = ()  # processes of earlier runs of this results folder: "pid: command"


class Guard:
    """Looks before and after each run of a matrix; `looks`: the earlier ones of the folder, to which later ones are held."""

    def __init__(self, results: Path, looks: Sequence[MachineState] = (), sys: Path = SYS) -> None:
        self._results = results
        self._looks = list(looks)
        self._sys = sys
        self._throttled: int | None = None  # before the run

    def look(self, memory_needed: int = 0) -> tuple[MachineState, list[tuple[str, str]]]:
        """Return the state and the flags (name, text) of the run that comes; takes about half a second."""
        now = look(self._results, sys=self._sys)
        self._looks.append(now)
        self._throttled = now.throttle_count
        return now, notes(now, self._looks, memory_needed)

    def after_run(self) -> list[tuple[str, str]]:
        """Return the flag of the run that has just ended, if processors were throttled for heat since the look before it."""
        return throttled(self._throttled, self._sys)


def look(results: Path, proc: Path = PROC, sys: Path = SYS) -> MachineState:
    """Return the machine's state now; takes about half a second, in which the sentinel keeps one core busy."""
    started, used = clock.monotonic_ns(), _others_ns(proc)
    sentinels = [_sentinel()]
    while clock.monotonic_ns() - started < LOOK_NS:
        sentinels.append(_sentinel())
    seconds, later = (clock.monotonic_ns() - started) / clock.NANOSECONDS, _others_ns(proc)
    each = None if used is None or later is None else (later - used) / clock.NANOSECONDS / len(os.sched_getaffinity(0))
    available, total = memory(proc)
    mark = str(results.resolve())
    earlier = [] if os.environ.get(RESULTS_MARK) == mark else with_mark(RESULTS_MARK, mark)  # this process is in a run itself
    return MachineState(
        load_1min=os.getloadavg()[0],
        sentinel_ns=min(sentinels),
        memory_available_bytes=available,
        memory_total_bytes=total,
        disk_free_bytes=free_bytes(results),
        temporary_free_bytes=free_bytes(Path(tempfile.gettempdir())),
        throttle_count=throttle_count(sys),
        clock_source=_text(sys / CLOCK_SOURCE),  # tsc, kvm-clock, hpet, ...
        governor=governor(sys),
        frequency_limit=frequency_limit(sys),
        others_percent=None if each is None else 100 * max(0.0, each - TICKS_SECONDS) / seconds,
        survivors=tuple(f"{pid}: {command_line(pid)}" for pid in earlier),
    )


def _others_ns(proc: Path) -> int | None:
    """Return what other processes have used so far of the processors that this one may use."""
    with contextlib.suppress(OSError), contextlib.closing(HostClock(proc, os.sched_getaffinity(0))) as host:
        times = host.read()
        return (times.usable_busy_ns or times.busy_ns) - time.process_time_ns()
    return None


def busy_text(now: MachineState) -> str | None:
    """Return what to say before the first run of a machine that is busy with other programs; None: it is not."""
    if now.others_percent is None or now.others_percent <= LARGEST_SHARE:
        return None
    return (
        f"! Other programs use at least {now.others_percent:.0f} % of the processors now: "
        "times will be inflated, differences and ratios may be wrong"
    )


def notes(now: MachineState, looks: Sequence[MachineState], memory_needed: int = 0) -> list[tuple[str, str]]:
    """Return flags (name, text) for what a reader of the run's times must know.

    `looks`: those of the folder so far, this one too, in the order of time. `memory_needed`: bytes of the workers.
    """
    flags = []
    first = looks[0]
    ratio = now.sentinel_ns / min(look.sentinel_ns for look in looks)
    if ratio > DRIFT_LIMIT:
        flags.append(("machine_drift", f"the sentinel took {ratio:.2f} times as long as in the fastest look of this folder"))
    pairs = (("clock source", first.clock_source, now.clock_source), ("governor", first.governor, now.governor))
    changed = [f"{what} {old} became {new}" for what, old, new in pairs if None not in (old, new) and old != new]
    if changed:
        flags.append(("machine_changed", f"since the first look of this folder: {', '.join(changed)}"))
    if now.survivors:
        flags.append(("earlier_survivor", f"processes of an earlier run are alive: {'; '.join(now.survivors[:3])}"))
    available, total = now.memory_available_bytes, now.memory_total_bytes
    if available is not None:
        least = min(LEAST_MEMORY, LEAST_SHARE * total) if total is not None else LEAST_MEMORY
        text = f"{available / 1e6:.0f} MB of memory are free"
        if available < memory_needed:
            flags.append(("low_memory", f"{text}, but the workers may use {memory_needed / 1e6:.0f} MB"))
        elif available < least:
            flags.append(("low_memory", f"{text}, below {least / 1e6:.0f} MB"))
    short = [size for size in (now.disk_free_bytes, now.temporary_free_bytes) if size is not None and size < LEAST_DISK]
    if short:
        flags.append(("low_disk", f"{min(short) / 1e6:.0f} MB are free where the run writes, below {LEAST_DISK / 1e6:.0f} MB"))
    if now.clock_source in SLOW_CLOCKS:
        flags.append(("slow_clock_source", f"the kernel reads the time from {now.clock_source}: slow or coarse"))
    if now.frequency_limit is not None and now.frequency_limit < 1:
        text = f"a processor may reach {100 * now.frequency_limit:.0f} % of its maximum frequency"
        flags.append(("frequency_limited", text))
    return flags


def stored_states(stored: Iterable[Any]) -> list[MachineState]:
    """Return those of stored states that can be read, in their order."""
    states = []
    for value in stored:
        with contextlib.suppress(msgspec.ValidationError):
            states.append(msgspec.convert(value, MachineState))
    return states


def _sentinel() -> int:
    started = time.thread_time_ns()
    digest = hashlib.sha256()
    for _ in range(32):
        digest.update(_BLOCK)
    digest.digest()
    return max(1, time.thread_time_ns() - started)


def free_bytes(folder: Path) -> int | None:
    """Return the free space of the disk that has a folder."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free
    return None


def throttled(before: int | None, sys: Path = SYS) -> list[tuple[str, str]]:
    """Return the flag of a run in which processors were throttled for heat; `before`: their count before it."""
    count = throttle_count(sys)
    times = 0 if count is None or before is None else count - before
    return [("cpu_throttled", f"processors were throttled for heat {times} times during the run")] if times > 0 else []


def throttle_count(sys: Path = SYS) -> int | None:
    """Return how often processors were throttled for heat since the machine's start, over all cores and packages."""
    counts = []
    for path in (sys / CPUS).glob("cpu[0-9]*/thermal_throttle/*_throttle_count"):
        with contextlib.suppress(OSError, ValueError):
            counts.append(int(path.read_text()))
    return sum(counts) if counts else None


def governor(sys: Path = SYS) -> str | None:
    """Return the governor of the processors' frequency, with commas between where they differ."""
    governors = {_text(path) for path in (sys / CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ",".join(sorted(name for name in governors if name)) or None


def frequency_limit(sys: Path = SYS) -> float | None:
    """Return the least share of its maximum frequency that a processor may reach."""
    shares = []
    for folder in (sys / CPUS).glob("cpu[0-9]*/cpufreq"):
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            shares.append(int((folder / "scaling_max_freq").read_text()) / int((folder / "cpuinfo_max_freq").read_text()))
    return min(shares) if shares else None


def _text(path: Path) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text().strip() or None
    return None
