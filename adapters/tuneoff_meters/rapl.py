"""The `rapl` meter: energy counters of CPU packages and DRAM, by the kernel's powercap files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from tuneoff.base import clock
from tuneoff.base.files import read_regular
from tuneoff.meter import MeterDescription, MeterError, PowerMeter, PowerSample

_TOP = re.compile(r"[a-z]+-rapl:\d+")  # intel-rapl:0, on AMD too; intel-rapl-mmio:0 is the same counter by another way
_ZONE = re.compile(r"[a-z]+-rapl:\d+(:\d+)?")
_MIRROR_UJ = 1_000_000  # two counters that are nearer than 1 J are one: multi-die parts show it several times
_MOST_BYTES = 1000  # of a file of the kernel's
ROOT = "/sys/class/powercap"
HIGHEST_WATTS = 10_000.0  # of one zone; a counter that moved faster was reset, not wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class RaplOptions:
    """What the experiment file gives."""

    root: Annotated[str, Meta(min_length=1)] = ROOT  # the powercap folder


class RaplMeter(PowerMeter):
    """Packages and DRAM zones, each a domain with an ever-growing counter.

    The counters wrap after some minutes at full load; read at least every 10 s, and each wrap is seen.
    """

    options_type = RaplOptions

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._zones, left_out = _zones(Path(self.check_options(options).root))
        names = tuple(zone.domain for zone in self._zones)
        source = f"powercap: {', '.join(names)}" + (f" ({'; '.join(left_out)})" if left_out else "")
        self.description = MeterDescription(kind="measured", source=source, domains=names)

    def read(self) -> Sequence[PowerSample]:
        """Return one sample per zone.

        Raises:
            MeterError: a zone cannot be read, or its counter was reset; said once, and the next call reads the others.
        """
        problems: list[str] = []
        samples = [sample for zone in self._zones if (sample := zone.sample(problems)) is not None]
        if problems:
            raise MeterError("; ".join(problems))
        return samples


@dataclass(slots=True)
class _Zone:
    """A counter of microjoules that starts again at 0 after `range_uj`; its samples count joules since the meter was opened."""

    folder: Path
    domain: str  # e.g. package-0, dram-0
    range_uj: int  # 0: not known
    last_uj: int
    last_ns: int
    total_uj: int = 0
    is_lost: bool = False

    def sample(self, problems: list[str]) -> PowerSample | None:
        try:
            descriptor = os.open(f"{self.folder}/energy_uj", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                value, now = int(os.read(descriptor, 64)), clock.monotonic_ns()  # bare calls: it is read all the time
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            if not self.is_lost:
                problem = f"zone {self.domain} cannot be read any more ({getattr(error, 'strerror', None) or error})"
                problems.append(f"{problem}; it is tried again, and unknown till then")
            self.is_lost = True
            return None
        self.is_lost = False
        moved = value - self.last_uj
        if moved < 0 and self.range_uj:
            moved += self.range_uj + 1
        seconds = (now - self.last_ns) / clock.NANOSECONDS
        if not 0 <= moved <= HIGHEST_WATTS * 1e6 * max(seconds, 0.1):
            problems.append(f"the counter of {self.domain} was reset; its energy since the sample before is not counted")
            moved = 0
        self.last_uj, self.last_ns, self.total_uj = value, now, self.total_uj + moved
        return PowerSample(t=now, domain=self.domain, joules=self.total_uj / 1e6)


def _zones(root: Path) -> tuple[list[_Zone], list[str]]:
    """Return the zones to add up, and what was left out of them and why.

    Packages and DRAM zones; `psys` (the whole platform, packages included) only where there is no package.

    Raises:
        MeterError: there is no powercap folder, no zone in it, or the counters cannot be read; one line with the way out.
    """
    if not root.is_dir():
        raise MeterError(f"no RAPL (no-powercap): no {root} (a virtual machine has none; in a container mount the host's)")
    # zones lie flat in /sys/class, and inside each other under /sys/devices
    places = {path.name: path for pattern in ("*/*", "*") for path in root.glob(pattern) if _ZONE.fullmatch(path.name)}
    names: dict[str, str] = {}
    by_kind: dict[str, list[tuple[Path, str]]] = {"package": [], "psys": [], "dram": []}
    for folder in sorted(places.values(), key=lambda folder: [int(part) for part in folder.name.split(":")[1:]]):
        with contextlib.suppress(OSError, ValueError):
            name = names[folder.name] = _read(folder / "name")
            if name == "dram":  # after its package, whose number it gets
                name += names.get(folder.name.rpartition(":")[0], "").removeprefix("package")
            elif not _TOP.fullmatch(folder.name):
                continue
            by_kind.get(name.partition("-")[0], []).append((folder, name))
    packages, drams = by_kind["package"], by_kind["dram"]
    chosen = packages or by_kind["psys"][:1]
    if not chosen:
        ways = "load the kernel module intel_rapl_msr; if there still is none, this CPU or virtual machine has no counter"
        raise MeterError(f"no RAPL (no-rapl-zone): no package among the zones under {root}; {ways}")
    left_out: list[str] = []
    zones: list[_Zone] = []
    for group in (chosen, drams if packages else ()):
        kept: list[_Zone] = []
        for folder, name in group:
            zone = _opened(folder, name, left_out)
            original = next((other for other in kept if zone and abs(other.last_uj - zone.last_uj) <= _MIRROR_UJ), None)
            if original is not None:
                left_out.append(f"{name} mirrors {original.domain}")
            elif zone is not None:
                kept.append(zone)
        zones += kept
    if not zones:
        raise MeterError(f"no RAPL (unreadable): no zone under {root} answers: {'; '.join(left_out)}; the model meter needs none")
    return zones, left_out


def _read(path: Path) -> str:
    return read_regular(path, _MOST_BYTES, follow=True).decode().strip()


def _opened(folder: Path, domain: str, left_out: list[str]) -> _Zone | None:
    try:
        value = int(_read(folder / "energy_uj"))
    except PermissionError as error:
        ways = "run `chmod -R a+r` on it (until reboot), add a udev rule, or give Python CAP_DAC_READ_SEARCH"
        raise MeterError(f"no RAPL (unreadable): {folder / 'energy_uj'} is readable by root only; {ways}") from error
    except (OSError, ValueError) as error:
        left_out.append(f"{domain} does not answer: {getattr(error, 'strerror', None) or error}")
        return None
    highest = 0
    with contextlib.suppress(OSError, ValueError):
        highest = int(_read(folder / "max_energy_range_uj"))
    return _Zone(folder, domain, highest, value, clock.monotonic_ns())
