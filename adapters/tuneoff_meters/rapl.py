"""The `rapl` meter: energy counters of CPU packages and DRAM, by the kernel's powercap files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base import clock
from tuneoff.base.files import read_regular
from tuneoff.meter import MeterDescription, MeterError, PowerMeter, PowerSample, check_names, text

_TOP = re.compile(r"[a-z]+-rapl:\d+")  # intel-rapl:0, on AMD too; intel-rapl-mmio:0 is the same counter by another way
_INNER = re.compile(r"[a-z]+-rapl:\d+:\d+")
_MIRROR_UJ = 1_000_000  # two counters that are nearer than 1 J are one: multi-die parts show it several times
_MOST_BYTES = 1000  # of a file of the kernel's
ROOT = "/sys/class/powercap"
HIGHEST_WATTS = 10_000.0  # of one zone; a counter that moved faster was reset, not wrapped
Named = list[tuple[Path, str]]


class RaplMeter(PowerMeter):
    """Packages and DRAM zones, each a domain with an ever-growing counter. Option `root`: the powercap folder.

    The counters wrap after some minutes at full load; read at least every 10 s, and each wrap is seen.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.check_options(options)
        root = Path(text("rapl", options, "root", ROOT))
        zones, left_out = find_zones(root)
        now = clock.monotonic_ns()
        self._counters = [_Counter(zone, now) for zone in zones]
        names = tuple(zone.domain for zone in zones)
        source = f"powercap: {', '.join(names)}" + (f" ({'; '.join(left_out)})" if left_out else "")
        self.description = MeterDescription(kind="measured", source=source, domains=names)

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Refuse wrong options; nothing is opened.

        Raises:
            OptionError: there is one.
        """
        check_names("rapl", options, ("root",))
        text("rapl", options, "root", ROOT)

    def read(self) -> Sequence[PowerSample]:
        """Return one sample per zone.

        Raises:
            MeterError: a zone cannot be read, or its counter was reset; said once, and the next call reads the others.
        """
        problems: list[str] = []
        samples = [sample for counter in self._counters if (sample := counter.sample(problems)) is not None]
        if problems:
            raise MeterError("; ".join(problems))
        return samples


class _Counter:
    """One zone's counter without its wraps: joules since the meter was opened."""

    def __init__(self, zone: Zone, now_ns: int) -> None:
        self._zone = zone
        self._last_uj = zone.opened_at_uj
        self._last_ns = now_ns
        self._total_uj = 0
        self._is_lost = False

    def sample(self, problems: list[str]) -> PowerSample | None:
        try:
            value, now = self._zone.energy_uj(), clock.monotonic_ns()
        except (OSError, ValueError) as error:
            if not self._is_lost:
                reason = getattr(error, "strerror", None) or str(error)
                problem = f"zone {self._zone.domain} cannot be read any more ({reason})"
                problems.append(f"{problem}; it is tried again, and unknown till then")
            self._is_lost = True
            return None
        self._is_lost = False
        moved = value - self._last_uj
        if moved < 0 and self._zone.range_uj is not None:
            moved += self._zone.range_uj + 1
        seconds = (now - self._last_ns) / clock.NANOSECONDS
        if moved < 0 or moved > HIGHEST_WATTS * 1e6 * max(seconds, 0.1):
            problems.append(f"the counter of {self._zone.domain} was reset; its energy since the sample before is not counted")
            moved = 0
        self._last_uj, self._last_ns, self._total_uj = value, now, self._total_uj + moved
        return PowerSample(t=now, domain=self._zone.domain, joules=self._total_uj / 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """One counter: `energy_uj` counts microjoules and starts again at 0 after `range_uj`."""

    folder: Path
    domain: str  # e.g. package-0, dram-0
    range_uj: int | None
    opened_at_uj: int

    def energy_uj(self) -> int:
        """Return the counter.

        Raises:
            OSError: it cannot be read.
            ValueError: it is not a number.
        """
        descriptor = os.open(
            f"{self.folder}/energy_uj", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )  # bare calls: it is read all the time
        try:
            return int(os.read(descriptor, 64))
        finally:
            os.close(descriptor)


def find_zones(root: Path) -> tuple[list[Zone], list[str]]:
    """Return the zones to add up, and what was left out of them and why.

    Packages and DRAM zones; `psys` (the whole platform, packages included) only where there is no package.

    Raises:
        MeterError: there is no powercap folder, no zone in it, or the counters cannot be read; one line with the way out.
    """
    if not root.is_dir():
        raise MeterError(f"no RAPL (no-powercap): no {root} (a virtual machine has none; in a container mount the host's)")
    packages: Named = []
    drams: Named = []
    platforms: Named = []
    for folder in sorted(_folders(root), key=lambda folder: [int(part) for part in folder.name.split(":")[1:]]):
        name = _name(folder)
        if _TOP.fullmatch(folder.name) and name.startswith("package"):
            packages.append((folder, name))
        elif _TOP.fullmatch(folder.name) and name == "psys":
            platforms.append((folder, name))
        elif name == "dram":
            drams.append((folder, name))
    by_zone = {folder.name: name.removeprefix("package") for folder, name in packages}
    drams = [(folder, name + by_zone.get(folder.name.rpartition(":")[0], "")) for folder, name in drams]
    chosen = packages or platforms[:1]
    if not chosen:
        ways = "load the kernel module intel_rapl_msr; if there still is none, this CPU or virtual machine has no counter"
        raise MeterError(f"no RAPL (no-rapl-zone): no package among the zones under {root}; {ways}")
    left_out: list[str] = []
    zones: list[Zone] = []
    for group in (chosen, drams if packages else []):
        opened = [zone for folder, name in group if (zone := _opened(folder, name, left_out))]
        kept: list[Zone] = []
        for zone in opened:
            original = next((other for other in kept if abs(other.opened_at_uj - zone.opened_at_uj) <= _MIRROR_UJ), None)
            if original is None:
                kept.append(zone)
            else:
                left_out.append(f"{zone.domain} mirrors {original.domain}")
        zones += kept
    if not zones:
        raise MeterError(f"no RAPL (unreadable): no zone under {root} answers: {'; '.join(left_out)}; the model meter needs none")
    return zones, left_out


def _folders(root: Path) -> Iterator[Path]:
    """Yield every zone's folder once: they lie flat in /sys/class, and inside each other under /sys/devices."""
    seen: set[str] = set()
    flat = list(root.iterdir())
    nested = [inner for outer in flat if _TOP.fullmatch(outer.name) and outer.is_dir() for inner in outer.iterdir()]
    for folder in (*flat, *nested):
        is_zone = _TOP.fullmatch(folder.name) or _INNER.fullmatch(folder.name)
        if is_zone and folder.name not in seen and folder.is_dir():
            seen.add(folder.name)
            yield folder


def _name(folder: Path) -> str:
    try:
        return read_regular(folder / "name", _MOST_BYTES, follow=True).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _opened(folder: Path, domain: str, left_out: list[str]) -> Zone | None:
    try:
        value = int(read_regular(folder / "energy_uj", _MOST_BYTES, follow=True))
    except PermissionError as error:
        ways = "run `chmod -R a+r` on it (until reboot), add a udev rule, or give Python CAP_DAC_READ_SEARCH"
        raise MeterError(f"no RAPL (unreadable): {folder / 'energy_uj'} is readable by root only; {ways}") from error
    except (OSError, ValueError) as error:
        left_out.append(f"{domain} does not answer: {getattr(error, 'strerror', None) or error}")
        return None
    try:
        highest = int(read_regular(folder / "max_energy_range_uj", _MOST_BYTES, follow=True))
    except (OSError, ValueError):
        highest = 0
    return Zone(folder=folder, domain=domain, range_uj=highest or None, opened_at_uj=value)
