"""What Linux tells of the machine between runs, read by hand: each reading is None where it cannot be had."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

PROC, SYS = Path("/proc"), Path("/sys")
CPUS = "devices/system/cpu"
CLOCK_SOURCE = "devices/system/clocksource/clocksource0/current_clocksource"


def memory(proc: Path = PROC) -> tuple[int | None, int | None]:
    """Return (available, total) bytes of memory."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (proc / "meminfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("MemAvailable", "MemTotal"):
                found[name] = int(value.split()[0]) * 1024
    return found.get("MemAvailable"), found.get("MemTotal")


def free_bytes(folder: Path) -> int | None:
    """Return the free space of the disk that has a folder."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free
    return None


def throttle_count(sys: Path = SYS) -> int | None:
    """Return how often processors were throttled for heat since the machine's start, over all cores and packages."""
    counts = list(_numbers(sys, "thermal_throttle/*_throttle_count"))
    return sum(counts) if counts else None


def clock_source(sys: Path = SYS) -> str | None:
    """Return what the kernel reads the time from: tsc, kvm-clock, hpet, ..."""
    return _text(sys / CLOCK_SOURCE)


def governor(sys: Path = SYS) -> str | None:
    """Return the governor of the processors' frequency, with commas between where they differ."""
    found = {_text(path) for path in (sys / CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ",".join(sorted(name for name in found if name)) or None


def frequency_limit(sys: Path = SYS) -> float | None:
    """Return the least share of its greatest frequency that a processor may reach."""
    shares = []
    for folder in (sys / CPUS).glob("cpu[0-9]*/cpufreq"):
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            shares.append(int((folder / "scaling_max_freq").read_text()) / int((folder / "cpuinfo_max_freq").read_text()))
    return min(shares) if shares else None


def _numbers(sys: Path, pattern: str) -> Iterator[int]:
    for path in (sys / CPUS).glob(f"cpu[0-9]*/{pattern}"):
        with contextlib.suppress(OSError, ValueError):
            yield int(path.read_text())


def _text(path: Path) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text().strip() or None
    return None
