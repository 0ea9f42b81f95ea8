"""Which CPU this host has, by /proc/cpuinfo: vendor, family, model, stepping, name and flags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tuneoff.measure.power.generations import ARM

_MADE_UP = re.compile(
    r"qemu|\bkvm\b|virtual|\bbhyve\b"  # QEMU Virtual CPU, Common KVM processor
    r"|\((?:nehalem|westmere|sandybridge|ivybridge|haswell|broadwell|skylake|cascadelake|cooperlake|icelake|sapphirerapids"
    r"|graniterapids|sierraforest|clearwaterforest|denverton|snowridge)\b"  # Intel Xeon Processor (Skylake, IBRS)
    r"|epyc-\w+"  # AMD EPYC-Milan Processor
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One processor's identity; numbers are -1 where the kernel does not tell them."""

    vendor: str = ""
    family: int = -1
    model: int = -1
    stepping: int = -1
    name: str = ""
    flags: frozenset[str] = frozenset()

    @property
    def id(self) -> tuple[int, int]:
        """Family and model."""
        return self.family, self.model

    @property
    def is_made_up(self) -> bool:
        """Tell whether a hypervisor shows a model of its own, which may run on any later CPU."""
        return _MADE_UP.search(self.name.lower()) is not None

    @property
    def label(self) -> str:
        """Name, family and model, as they are printed."""
        number = f"{self.family}/{self.model}" if self.family >= 0 else "no family and model"
        return f"{self.name or self.vendor or 'unnamed CPU'} ({number})"


def this_cpu(path: Path = Path("/proc/cpuinfo")) -> Cpu:
    """Return the host's first processor; an empty one where the kernel does not tell."""
    try:
        first = path.read_text(errors="replace").partition("\n\n")[0]
    except OSError:
        return Cpu()
    found: dict[str, str] = {}
    for line in first.splitlines():
        key, _, value = line.partition(":")
        found[key.strip()] = value.strip()
    if "CPU implementer" in found:
        family, model = found["CPU implementer"], found.get("CPU part", "")
        return Cpu(vendor=ARM, family=_number(family), model=_number(model), name=found.get("model name", ""))
    return Cpu(
        vendor=found.get("vendor_id", ""),
        family=_number(found.get("cpu family", "")),
        model=_number(found.get("model", "")),
        stepping=_number(found.get("stepping", "")),
        name=found.get("model name", ""),
        flags=frozenset(found.get("flags", "").split()),
    )


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return -1
