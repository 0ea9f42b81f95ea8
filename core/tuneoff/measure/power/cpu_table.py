"""Watts per hardware thread by CPU: this host's CPU, and its entry of the shipped table, or the stated default.

Of two modelled energies it is said which is less only where it holds for all plausible weights, of stated servers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tuneoff.measure.power.generations import ARM, GENERATIONS, TELLING, plain
from tuneoff.record.environment import first_processor
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.schema import Coefficients

_MADE_UP = re.compile(
    r"qemu|\bkvm\b|virtual|\bbhyve\b"  # QEMU Virtual CPU, Common KVM processor
    r"|\((?:nehalem|westmere|sandybridge|ivybridge|haswell|broadwell|skylake|cascadelake|cooperlake|icelake|sapphirerapids"
    r"|graniterapids|sierraforest|clearwaterforest|denverton|snowridge)\b"  # Intel Xeon Processor (Skylake, IBRS)
    r"|epyc-\w+"  # AMD EPYC-Milan Processor
)
TABLE = Path(__file__).parent / "tables" / "cpu_watts.json"
DEFAULT = "default"  # the entry of all recent servers
FEWEST_SERVERS = 30  # of a row whose 5 and 95 % quantiles of the ratio of the weights are taken; below, the default's
KNOWN_SPREAD = 0.3  # of a CPU at least: what servers of one CPU, memory and cooling differ by
RATIO_LOW, RATIO_HIGH = "energy.weight_ratio_low", "energy.weight_ratio_high"  # metrics
Quantiles = tuple[float, float, float]  # 5, 50 and 95 %, over servers


class CpuRow(msgspec.Struct, frozen=True, kw_only=True):
    """A group of results, in watts per hardware thread."""

    results: int
    first: int  # years of publication
    last: int
    idle_mean: float
    full_mean: float
    idle: Quantiles
    full: Quantiles
    dynamic: Quantiles  # full - idle of each server
    ratio: Quantiles  # idle over that


class CpuTable(msgspec.Struct, frozen=True, kw_only=True):
    """The shipped table."""

    source: str
    date: str
    default_since: int
    default: CpuRow
    generations: dict[str, CpuRow]


@functools.cache
def load_table() -> CpuTable:
    """Return the shipped table; read once per process."""
    return msgspec.json.decode(TABLE.read_bytes(), type=CpuTable)


def default_ratio() -> tuple[tuple[float, float], str]:
    """Return the 5 and 95 % quantiles of idle over dynamic watts of the default's servers, and which servers these are."""
    table = load_table()
    row = table.default
    return (row.ratio[0], row.ratio[2]), f"{row.results} servers published since {table.default_since}"


def coefficients_of(cpu: CpuIdentity) -> tuple[Coefficients, str]:
    """Return the entry for a CPU: by family, model and stepping, then by name; else the default, and in one line why.

    Where generations share a family and model and neither stepping nor name tells them apart, the bounds span them all. What
    a hypervisor made up (a name such as "QEMU Virtual CPU", flags that the model does not have) takes the default.
    """
    listed = [generation for generation in GENERATIONS if generation.key in load_table().generations]
    by_name = [generation for generation in listed if generation.is_named(plain(cpu.name))]
    by_id = [generation for generation in listed if generation.vendor == cpu.vendor and cpu.id in generation.ids]
    candidates = by_id or by_name
    contradicting = sorted(cpu.flags & (TELLING - candidates[0].flags)) if candidates else []
    if _MADE_UP.search(cpu.name.lower()):  # it may run on any later CPU
        return entry(DEFAULT), f"{cpu.label} is a hypervisor's own name, of no CPU"
    if not candidates:
        return entry(DEFAULT), f"{cpu.label} is not in the table"
    if contradicting:
        text = f"{cpu.label} would be {candidates[0].key}, but has {', '.join(contradicting)}: a hypervisor hides the model"
        return entry(DEFAULT), text
    named = [generation for generation in candidates if generation in by_name]
    stepped = [
        generation for generation in candidates if generation.steppings is not None and cpu.stepping in generation.steppings
    ]
    return entry(*(generation.key for generation in named or stepped or candidates)), ""


def entry(*keys: str) -> Coefficients:
    """Return the entry of the generations of these keys, or of `default`: their mean medians, and bounds that hold for all.

    Raises:
        KeyError: the table has no such entry.
    """
    table, (ratio, servers) = load_table(), default_ratio()
    rows = [table.default if key == DEFAULT else table.generations[key] for key in keys]
    name = f"{DEFAULT} ({servers})" if keys == (DEFAULT,) else " or ".join(keys)
    idle, dynamic = [row.idle[1] for row in rows], [row.full[1] - row.idle[1] for row in rows]
    if keys != (DEFAULT,) and all(row.results >= FEWEST_SERVERS for row in rows):
        ratio = min(row.ratio[0] for row in rows), max(row.ratio[2] for row in rows)
        servers = f"{sum(row.results for row in rows)} servers with {name}"
    least, most = 1 - KNOWN_SPREAD, 1 + KNOWN_SPREAD
    return Coefficients(
        joules_per_cpu_second=round(sum(dynamic) / len(rows), 4),
        watts_per_core=round(sum(idle) / len(rows), 4),
        low=(
            round(min(least * min(dynamic), *(row.dynamic[0] for row in rows)), 4),
            round(min(least * min(idle), *(row.idle[0] for row in rows)), 4),
        ),
        high=(
            round(max(most * max(dynamic), *(row.dynamic[2] for row in rows)), 4),
            round(max(most * max(idle), *(row.idle[2] for row in rows)), 4),
        ),
        cpu=name,
        source=f"{table.source}; as of {table.date}",
        ratio=ratio,
        servers=servers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuIdentity:
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
    def label(self) -> str:
        """Name, family and model, as they are printed."""
        number = f"{self.family}/{self.model}" if self.family >= 0 else "no family and model"
        return f"{self.name or self.vendor or 'unnamed CPU'} ({number})"


def this_cpu(path: Path = Path("/proc/cpuinfo")) -> CpuIdentity:
    """Return the host's first processor; an empty one where the kernel does not tell."""
    fields = first_processor(path)
    name = fields.get("model name", "")
    if "CPU implementer" in fields:
        return CpuIdentity(
            vendor=ARM, family=_number(fields["CPU implementer"]), model=_number(fields.get("CPU part", "")), name=name
        )
    return CpuIdentity(
        vendor=fields.get("vendor_id", ""),
        family=_number(fields.get("cpu family", "")),
        model=_number(fields.get("model", "")),
        stepping=_number(fields.get("stepping", "")),
        name=name,
        flags=frozenset(fields.get("flags", "").split()),
    )


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return -1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRange:
    """The plausible range of r, watts per reserved core over joules per CPU second: 5 to 95 % quantile over `servers`."""

    low: float
    high: float
    servers: str

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"`0 <= low <= high` must hold, but got {self.low} and {self.high}")

    @property
    def text(self) -> str:
        """In words: `0.19 to 0.937, 287 servers published since 2023`."""
        return f"{self.low:.3g} to {self.high:.3g}, {self.servers}"


def weight_range(records: Iterable[RunRecord]) -> WeightRange:
    """Return the range that holds for all of these runs, of all their servers; the table's default where a record names none."""
    (low, high), servers = default_ratio()
    ranges: dict[tuple[float, float, str], None] = {}
    for record in records:
        least, most = (record.metrics.get(name) for name in (RATIO_LOW, RATIO_HIGH))
        if least is None or most is None or least.value is None or most.value is None:
            ranges[low, high, servers] = None
        else:
            ranges[least.value, most.value, least.source] = None
    lows, highs, groups = zip(*(ranges or {(low, high, servers): None}), strict=True)
    return WeightRange(low=min(lows), high=max(highs), servers=" and ".join(dict.fromkeys(groups)))
