"""The powercap zones to add up: all packages and their DRAM; none that lies inside another, none twice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuneoff.meter import MeterError

_TOP = re.compile(r"[a-z]+-rapl:\d+")  # intel-rapl:0, on AMD too; intel-rapl-mmio:0 is the same counter by another way
_INNER = re.compile(r"[a-z]+-rapl:\d+:\d+")
_MIRROR_UJ = 1_000_000  # two counters that are nearer than 1 J are one: multi-die parts show it several times


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
            ValueError: it is no number.
        """
        descriptor = os.open(f"{self.folder}/energy_uj", os.O_RDONLY | os.O_CLOEXEC)  # bare calls: it is read all the time
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
    packages, drams, platforms = _by_kind(root)
    chosen = packages or platforms[:1]
    if not chosen:
        ways = "load the kernel module intel_rapl_msr; if there still is none, this CPU or virtual machine has no counter"
        raise MeterError(f"no RAPL (no-rapl-zone): no package among the zones under {root}; {ways}")
    left_out: list[str] = []
    zones: list[Zone] = []
    for group in (chosen, drams if packages else []):
        opened = [zone for folder, name in group if (zone := _opened(folder, name, left_out))]
        zones += _without_mirrors(opened, left_out)
    if not zones:
        raise MeterError(f"no RAPL (unreadable): no zone under {root} answers: {'; '.join(left_out)}; the model meter needs none")
    return zones, left_out


Named = list[tuple[Path, str]]


def _by_kind(root: Path) -> tuple[Named, Named, Named]:
    """Return packages, DRAM zones and platforms with their domain names."""
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
    return packages, [(folder, name + by_zone.get(folder.name.rpartition(":")[0], "")) for folder, name in drams], platforms


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
        return (folder / "name").read_text().strip()
    except OSError:
        return ""


def _opened(folder: Path, domain: str, left_out: list[str]) -> Zone | None:
    try:
        value = int((folder / "energy_uj").read_bytes())
    except PermissionError as error:
        ways = "run `chmod -R a+r` on it (until reboot), add a udev rule, or give Python CAP_DAC_READ_SEARCH"
        raise MeterError(f"no RAPL (unreadable): {folder / 'energy_uj'} is readable by root only; {ways}") from error
    except (OSError, ValueError) as error:
        left_out.append(f"{domain} does not answer: {getattr(error, 'strerror', None) or error}")
        return None
    try:
        highest = int((folder / "max_energy_range_uj").read_bytes())
    except (OSError, ValueError):
        highest = 0
    return Zone(folder=folder, domain=domain, range_uj=highest or None, opened_at_uj=value)


def _without_mirrors(zones: list[Zone], left_out: list[str]) -> list[Zone]:
    kept: list[Zone] = []
    for zone in zones:
        original = next((one for one in kept if abs(one.opened_at_uj - zone.opened_at_uj) <= _MIRROR_UJ), None)
        if original is None:
            kept.append(zone)
        else:
            left_out.append(f"{zone.domain} mirrors {original.domain}")
    return kept
