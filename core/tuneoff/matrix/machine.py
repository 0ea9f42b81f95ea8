"""Is the machine quiet and the same as before? Looked at before each run: flagged, never blocked."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuneoff import clock

PRESSURE_LIMIT = 10.0  # % of the look in which some process waited for a CPU
LOOK_NS = 400_000_000  # long enough for a second program to show; the kernel's own averages still hold the run before
DRIFT_LIMIT = 1.25  # of the sentinel's time over the matrix's first
_BLOCK = bytes(1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """Load of the machine and the sentinel's time (SHA-256 of 32 MiB on one core, the best of the look) before a run.

    `cpu_pressure_percent`: share of the look in which some process waited for a CPU.
    """

    load_1min: float
    cpu_pressure_percent: float | None  # None: the kernel has no pressure information
    sentinel_ns: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def look() -> MachineState:
    """Return the machine's state now; takes about half a second, in which the sentinel keeps one core busy."""
    started, waited_before = clock.monotonic_ns(), _cpu_waiting_ns()
    times = [_sentinel()]
    while clock.monotonic_ns() - started < LOOK_NS:
        times.append(_sentinel())
    waited, elapsed = _cpu_waiting_ns(), clock.monotonic_ns() - started
    pressure = None if waited is None or waited_before is None else 100 * (waited - waited_before) / elapsed
    return MachineState(load_1min=os.getloadavg()[0], cpu_pressure_percent=pressure, sentinel_ns=min(times))


def notes(now: MachineState, first: MachineState) -> list[tuple[str, str]]:
    """Return flags (name, text) for what a reader of the run's times must know."""
    found = []
    if now.cpu_pressure_percent is not None and now.cpu_pressure_percent > PRESSURE_LIMIT:
        text = f"some process waited for a CPU in {now.cpu_pressure_percent:.0f} % of the {LOOK_NS / 1e9:g} s before the run"
        found.append(("busy_machine", text))
    ratio = now.sentinel_ns / first.sentinel_ns
    if not 1 / DRIFT_LIMIT <= ratio <= DRIFT_LIMIT:
        found.append(("machine_drift", f"the sentinel took {ratio:.2f} times as long as before the matrix's first run"))
    return found


def _cpu_waiting_ns() -> int | None:
    """Return for how long some process has waited for a CPU since the machine's start; None without pressure information."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/pressure/cpu").read_text().splitlines():
            if line.startswith("some"):
                return int(line.split("total=")[1].split()[0]) * 1000
    return None


def _sentinel() -> int:
    started = clock.monotonic_ns()
    digest = hashlib.sha256()
    for _ in range(32):
        digest.update(_BLOCK)
    digest.digest()
    return clock.monotonic_ns() - started
