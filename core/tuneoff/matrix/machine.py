"""Is the machine quiet and the same as before? Looked at before each run: flagged, never blocked."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuneoff import clock

PRESSURE_LIMIT = 5.0  # % of the last 10 s in which some process waited for a CPU
DRIFT_LIMIT = 1.25  # of the sentinel's time over the matrix's first
_BLOCK = bytes(1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """Load of the machine and the sentinel's time (SHA-256 of 32 MiB on one core, best of 3) before a run."""

    load_1min: float
    cpu_pressure_percent: float | None  # None: the kernel has no pressure information
    sentinel_ns: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def look() -> MachineState:
    """Return the machine's state now; takes about a tenth of a second."""
    return MachineState(
        load_1min=os.getloadavg()[0], cpu_pressure_percent=_cpu_pressure(), sentinel_ns=min(_sentinel() for _ in range(3))
    )


def notes(now: MachineState, first: MachineState) -> list[tuple[str, str]]:
    """Return flags (name, text) for what a reader of the run's times must know."""
    found = []
    if now.cpu_pressure_percent is not None and now.cpu_pressure_percent > PRESSURE_LIMIT:
        text = f"some process waited for a CPU in {now.cpu_pressure_percent:g} % of the 10 s before the run"
        found.append(("busy_machine", text))
    ratio = now.sentinel_ns / first.sentinel_ns
    if not 1 / DRIFT_LIMIT <= ratio <= DRIFT_LIMIT:
        found.append(("machine_drift", f"the sentinel took {ratio:.2f} times as long as before the matrix's first run"))
    return found


def _cpu_pressure() -> float | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/pressure/cpu").read_text().splitlines():
            if line.startswith("some"):
                return float(line.split("avg10=")[1].split()[0])
    return None


def _sentinel() -> int:
    started = clock.monotonic_ns()
    digest = hashlib.sha256()
    for _ in range(32):
        digest.update(_BLOCK)
    digest.digest()
    return clock.monotonic_ns() - started
