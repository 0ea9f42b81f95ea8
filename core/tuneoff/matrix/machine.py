"""The contamination guard: is the machine quiet and the same as before? Looked at before each run: flagged, never blocked."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tuneoff import clock
from tuneoff.matrix import readings
from tuneoff.supervisor.leftovers import RESULTS_MARK
from tuneoff.supervisor.processes import command_line

PRESSURE_LIMIT = 10.0  # % of the look in which some process waited for a CPU
STEAL_LIMIT = 2.0  # % of the processors' time in the look that a hypervisor took
LOOK_NS = 400_000_000  # long enough for a second program to show; the kernel's own averages still hold the run before
DRIFT_LIMIT = 1.25  # of the sentinel's time over the matrix's first
LEAST_MEMORY, LEAST_SHARE = 1_000_000_000, 0.1  # bytes, and of the machine's memory: below both there is too little
LEAST_DISK = 1_000_000_000
SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})  # µs per reading, or coarse
_BLOCK = bytes(1 << 20)

# what may be otherwise in a repetition; the others of `notes` belong to the machine as it is
PASSING = frozenset(
    {
        "busy_machine",
        "machine_drift",
        "machine_changed",
        "earlier_survivor",
        "other_run",
        "steal_before",
        "low_memory",
        "low_disk",
        "cpu_throttled",
    }
)
FLAGS = PASSING | {"slow_clock_source", "frequency_limited"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """The machine before a run; None where the system does not tell.

    `cpu_pressure_percent`: share of the look in which some process waited for a CPU. `sentinel_ns`: SHA-256 of 32 MiB on
    one core, the best of the look: the calibration. `throttle_count`: since the machine's start.
    """

    load_1min: float
    cpu_pressure_percent: float | None
    sentinel_ns: Annotated[int, msgspec.Meta(gt=0)]
    steal_percent: float | None = None
    memory_available_bytes: int | None = None
    memory_total_bytes: int | None = None
    disk_free_bytes: int | None = None  # the results folder's
    temporary_free_bytes: int | None = None  # the temporary folder's
    throttle_count: int | None = None
    clock_source: str | None = None
    governor: str | None = None
    frequency_limit: float | None = None  # least share of its greatest frequency that a processor may reach
    survivors: tuple[str, ...] = ()  # processes of earlier runs of this results folder: "pid: command"
    other_runs: int = 0  # processes of runs of other results folders

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "survivors": list(self.survivors)}


class Guard:
    """Looks before and after each run of a matrix; knows the look that the others are held to: the first quiet one."""

    def __init__(self, results: Path, reference: MachineState | None = None, sys: Path = readings.SYS) -> None:
        self._results = results
        self._reference = reference
        self._sys = sys
        self._throttled: int | None = None  # before the run

    def look(self, memory_needed: int = 0) -> tuple[MachineState, list[tuple[str, str]]]:
        """Return the state and the flags (name, text) of the run that comes; takes about half a second."""
        now = look(self._results, sys=self._sys)
        if self._reference is None or (is_quiet(now) and not is_quiet(self._reference)):
            self._reference = now
        self._throttled = now.throttle_count
        return now, notes(now, self._reference, memory_needed)

    def after_run(self) -> list[tuple[str, str]]:
        """Return the flag of the run that has just ended, if processors were throttled for heat since the look before it."""
        count = readings.throttle_count(self._sys)
        times = 0 if count is None or self._throttled is None else count - self._throttled
        return [("cpu_throttled", f"processors were throttled for heat {times} times during the run")] if times > 0 else []


def look(results: Path, proc: Path = readings.PROC, sys: Path = readings.SYS) -> MachineState:
    """Return the machine's state now; takes about half a second, in which the sentinel keeps one core busy."""
    started, waited_before, times_before = clock.monotonic_ns(), readings.cpu_waiting_ns(proc), readings.cpu_times(proc)
    sentinels = [_sentinel()]
    while clock.monotonic_ns() - started < LOOK_NS:
        sentinels.append(_sentinel())
    waited, times, elapsed = readings.cpu_waiting_ns(proc), readings.cpu_times(proc), clock.monotonic_ns() - started
    marked = readings.marked_processes(RESULTS_MARK, proc)
    own = str(results.resolve())
    available, total = readings.memory(proc)
    return MachineState(
        load_1min=os.getloadavg()[0],
        cpu_pressure_percent=None if waited is None or waited_before is None else 100 * (waited - waited_before) / elapsed,
        sentinel_ns=min(sentinels),
        steal_percent=_steal(times_before, times),
        memory_available_bytes=available,
        memory_total_bytes=total,
        disk_free_bytes=readings.free_bytes(results),
        temporary_free_bytes=readings.free_bytes(Path(tempfile.gettempdir())),
        throttle_count=readings.throttle_count(sys),
        clock_source=readings.clock_source(sys),
        governor=readings.governor(sys),
        frequency_limit=readings.frequency_limit(sys),
        survivors=tuple(f"{pid}: {command_line(pid)}" for pid, value in sorted(marked.items()) if value == own),
        other_runs=sum(value != own for value in marked.values()),
    )


def is_quiet(state: MachineState) -> bool:
    """Tell whether no more processes waited for a CPU than on a machine of our own; where the system does not tell, yes."""
    return (state.cpu_pressure_percent or 0.0) <= PRESSURE_LIMIT


def notes(now: MachineState, first: MachineState, memory_needed: int = 0) -> list[tuple[str, str]]:
    """Return flags (name, text) for what a reader of the run's times must know.

    `first`: the look that others are held to. `memory_needed`: bytes of the workers.
    """
    found = []
    if not is_quiet(now):
        text = f"some process waited for a CPU in {now.cpu_pressure_percent:.0f} % of the {LOOK_NS / 1e9:g} s before the run"
        found.append(("busy_machine", text))
    ratio = now.sentinel_ns / first.sentinel_ns
    if not 1 / DRIFT_LIMIT <= ratio <= DRIFT_LIMIT:
        found.append(("machine_drift", f"the sentinel took {ratio:.2f} times as long as before the first run on a quiet machine"))
    changed = [
        text
        for text in (
            _change("clock source", now.clock_source, first.clock_source),
            _change("governor", now.governor, first.governor),
        )
        if text
    ]
    if changed:
        found.append(("machine_changed", f"since the matrix's first run: {', '.join(changed)}"))
    if now.survivors:
        found.append(("earlier_survivor", f"processes of an earlier run are alive: {'; '.join(now.survivors[:3])}"))
    if now.other_runs:
        found.append(("other_run", f"{now.other_runs} processes of a run of another results folder are alive"))
    if now.steal_percent is not None and now.steal_percent > STEAL_LIMIT:
        text = f"a hypervisor took {now.steal_percent:.0f} % of the processors' time in the {LOOK_NS / 1e9:g} s before the run"
        found.append(("steal_before", text))
    lacking = _memory_lacking(now, memory_needed)
    if lacking is not None:
        found.append(("low_memory", lacking))
    short = [size for size in (now.disk_free_bytes, now.temporary_free_bytes) if size is not None and size < LEAST_DISK]
    if short:
        found.append(("low_disk", f"{min(short) / 1e6:.0f} MB are free where the run writes, below {LEAST_DISK / 1e6:.0f} MB"))
    if now.clock_source in SLOW_CLOCKS:
        found.append(("slow_clock_source", f"the kernel reads the time from {now.clock_source}: slow or coarse"))
    if now.frequency_limit is not None and now.frequency_limit < 1:
        text = f"a processor may reach {100 * now.frequency_limit:.0f} % of its greatest frequency"
        found.append(("frequency_limited", text))
    return found


def reference(states: Iterable[Any]) -> MachineState | None:
    """Return the look that later ones are held to, of stored ones in the order of time: the first quiet one, else the first."""
    known = [state for state in map(from_json, states) if state is not None]
    return next(filter(is_quiet, known), known[0] if known else None)


def from_json(stored: Any) -> MachineState | None:
    """Return a stored state, or None where it is none; what an older record lacks is None."""
    if not isinstance(stored, Mapping):
        return None
    try:
        return msgspec.convert({"load_1min": 0.0, "cpu_pressure_percent": None, **stored}, MachineState)
    except msgspec.ValidationError:
        return None


def _change(what: str, now: str | None, first: str | None) -> str | None:
    return f"{what} {first} became {now}" if now is not None and first is not None and now != first else None


def _memory_lacking(now: MachineState, needed: int) -> str | None:
    available, total = now.memory_available_bytes, now.memory_total_bytes
    if available is None:
        return None
    if available < needed:
        return f"{available / 1e6:.0f} MB of memory are free, but the workers may use {needed / 1e6:.0f} MB"
    least = min(LEAST_MEMORY, LEAST_SHARE * total) if total is not None else LEAST_MEMORY
    return f"{available / 1e6:.0f} MB of memory are free, below {least / 1e6:.0f} MB" if available < least else None


def _steal(before: readings.CpuTimes | None, now: readings.CpuTimes | None) -> float | None:
    if before is None or now is None or now.total <= before.total:
        return None
    return 100 * (now.steal - before.steal) / (now.total - before.total)


def _sentinel() -> int:
    started = clock.monotonic_ns()
    digest = hashlib.sha256()
    for _ in range(32):
        digest.update(_BLOCK)
    digest.digest()
    return clock.monotonic_ns() - started
