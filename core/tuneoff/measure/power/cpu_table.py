"""Watts per hardware thread by CPU: this host's CPU, and its entry of the shipped table, or the stated default.

Of two modelled energies it is said which is less only where it holds for all plausible weights, of stated servers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tuneoff.measure.power.generations import ARM, GENERATIONS, TELLING, Generation, plain
from tuneoff.record.environment import first_processor
from tuneoff.record.run_record import RunRecord

_MADE_UP = re.compile(
    r"qemu|\bkvm\b|virtual|\bbhyve\b"  # QEMU Virtual CPU, Common KVM processor
    r"|\((?:nehalem|westmere|sandybridge|ivybridge|haswell|broadwell|skylake|cascadelake|cooperlake|icelake|sapphirerapids"
    r"|graniterapids|sierraforest|clearwaterforest|denverton|snowridge)\b"  # Intel Xeon Processor (Skylake, IBRS)
    r"|epyc-\w+"  # AMD EPYC-Milan Processor
)
TABLE = Path(__file__).parent / "tables" / "cpu_watts.json"
FEWEST_SERVERS = 30  # of a row whose 5 and 95 % quantiles of the ratio of the weights are taken; below, the default's
KNOWN_SPREAD = 0.3  # of a known CPU at least: what servers of one CPU, memory and cooling differ by
RATIO_LOW, RATIO_HIGH = "energy.weight_ratio_low", "energy.weight_ratio_high"  # metrics


class CpuRow(msgspec.Struct, frozen=True, kw_only=True):
    """A group of results, in watts per hardware thread; triples are the 5, 50 and 95 % quantiles over servers."""

    results: int
    first: int  # years of publication
    last: int
    idle_mean: float
    full_mean: float
    idle: tuple[float, float, float]
    full: tuple[float, float, float]
    dynamic: tuple[float, float, float]  # full - idle of each server
    ratio: tuple[float, float, float]  # idle over that


class CpuTable(msgspec.Struct, frozen=True, kw_only=True):
    """The shipped table."""

    source: str
    date: str
    default_since: int
    default: CpuRow
    generations: dict[str, CpuRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watts:
    """Per hardware thread: at active idle, and what full load adds, each with bounds."""

    entry: str
    idle: float
    dynamic: float
    low: tuple[float, float]  # (dynamic, idle)
    high: tuple[float, float]
    ratio: tuple[float, float]  # of idle to dynamic: from the 5 to the 95 % quantile of `servers`
    servers: str
    why_default: str = ""  # one line: why this CPU has no entry of its own; "" where it has


def default_ratio() -> tuple[tuple[float, float], str]:
    """Return the 5 and 95 % quantiles of idle over dynamic watts of the default's servers, and which servers these are."""
    table = load_table()
    row = table.default
    return (row.ratio[0], row.ratio[2]), f"{row.results} servers published since {table.default_since}"


@functools.cache
def load_table() -> CpuTable:
    """Return the shipped table; read once per process."""
    return msgspec.json.decode(TABLE.read_bytes(), type=CpuTable)


def watts_for(cpu: CpuIdentity) -> Watts:
    """Return the entry for a CPU: by family, model and stepping, then by name; the default where neither tells one.

    Where generations share a family and model and neither stepping nor name tells them apart, the bounds span them all. What
    a hypervisor made up (a name such as "QEMU Virtual CPU", flags that the model does not have) takes the default.
    """
    if _MADE_UP.search(cpu.name.lower()):  # it may run on any later CPU
        return _default(f"{cpu.label} is a hypervisor's own name, of no CPU")
    generations = load_table().generations
    candidates = [
        generation
        for generation in GENERATIONS
        if generation.key in generations and generation.vendor == cpu.vendor and cpu.id in generation.ids
    ]
    if not candidates:
        named = (generation for generation in GENERATIONS if generation.is_named(plain(cpu.name)))
        candidates = [generation for generation in named if generation.key in generations]
        if not candidates:
            return _default(f"{cpu.label} is not in the table")
    contradicting = sorted(cpu.flags & (TELLING - candidates[0].flags))
    if contradicting:
        text = f"{cpu.label} would be {candidates[0].key}, but has {', '.join(contradicting)}: a hypervisor hides the model"
        return _default(text)
    by_name = [generation for generation in candidates if generation.is_named(plain(cpu.name))]
    by_stepping = [
        generation for generation in candidates if generation.steppings is not None and cpu.stepping in generation.steppings
    ]
    return _watts_of(by_name or by_stepping or candidates)


def named_entry(key: str) -> Watts | None:
    """Return the entry of a generation by its key, or `default`."""
    if key == "default":
        return _default("as asked for")
    if key not in load_table().generations:
        return None
    return _watts_of([generation for generation in GENERATIONS if generation.key == key])


def problems(table: Mapping[str, Any]) -> list[str]:
    """Return one line for each row of a table that no group of servers can have.

    The watts must hold `0.1 < idle < full < 12`, quantiles must rise, and no generation may hold most of all results: a
    pattern that matches everything does.
    """
    checked = msgspec.convert(dict(table), CpuTable)
    lines = []
    for name, row in {"default": checked.default, **checked.generations}.items():
        if not (0.1 < row.idle[1] < row.full[1] < 12 and 0.1 < row.idle_mean < row.full_mean < 12):
            watts = f"{row.idle[1]} and {row.full[1]} (means {row.idle_mean} and {row.full_mean})"
            lines.append(f"{name}: `0.1 < idle < full < 12` W per thread must hold, but got {watts}")
        for part, values in (("idle", row.idle), ("full", row.full), ("dynamic", row.dynamic), ("ratio", row.ratio)):
            if not 0 < values[0] <= values[1] <= values[2]:
                lines.append(f"{name}: quantiles of {part} must rise and be above 0, but got {values}")
    total = sum(row.results for row in checked.generations.values())
    lines += [
        f"{name}: holds {row.results} of {total} results; its pattern matches other CPUs"
        for name, row in checked.generations.items()
        if row.results > total / 2
    ]
    keys = {generation.key for generation in GENERATIONS}
    lines += [f"{name}: no such generation" for name in checked.generations if name not in keys]
    return lines


def _watts_of(candidates: Sequence[Generation]) -> Watts:
    rows = [load_table().generations[generation.key] for generation in candidates]
    idle = [row.idle[1] for row in rows]
    dynamic = [row.full[1] - row.idle[1] for row in rows]
    least, most = 1 - KNOWN_SPREAD, 1 + KNOWN_SPREAD
    lows = [(min(d * least, row.dynamic[0]), min(i * least, row.idle[0])) for d, i, row in zip(dynamic, idle, rows, strict=True)]
    highs = [(max(d * most, row.dynamic[2]), max(i * most, row.idle[2])) for d, i, row in zip(dynamic, idle, rows, strict=True)]
    entry = " or ".join(generation.key for generation in candidates)
    ratio, servers = default_ratio()
    if all(row.results >= FEWEST_SERVERS for row in rows):
        ratio = min(row.ratio[0] for row in rows), max(row.ratio[2] for row in rows)
        servers = f"{sum(row.results for row in rows)} servers with {entry}"
    return Watts(
        entry=entry,
        idle=round(sum(idle) / len(rows), 4),
        dynamic=round(sum(dynamic) / len(rows), 4),
        low=(round(min(low[0] for low in lows), 4), round(min(low[1] for low in lows), 4)),
        high=(round(max(high[0] for high in highs), 4), round(max(high[1] for high in highs), 4)),
        ratio=ratio,
        servers=servers,
    )


def _default(why: str) -> Watts:
    table = load_table()
    row = table.default
    ratio, servers = default_ratio()
    return Watts(
        entry=f"default ({servers})",
        idle=row.idle[1],
        dynamic=round(row.full[1] - row.idle[1], 4),
        low=(row.dynamic[0], row.idle[0]),
        high=(row.dynamic[2], row.idle[2]),
        ratio=ratio,
        servers=servers,
        why_default=why,
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
    if "CPU implementer" in fields:
        family, model = fields["CPU implementer"], fields.get("CPU part", "")
        return CpuIdentity(vendor=ARM, family=_number(family), model=_number(model), name=fields.get("model name", ""))
    return CpuIdentity(
        vendor=fields.get("vendor_id", ""),
        family=_number(fields.get("cpu family", "")),
        model=_number(fields.get("model", "")),
        stepping=_number(fields.get("stepping", "")),
        name=fields.get("model name", ""),
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
    default = WeightRange(low=low, high=high, servers=servers)
    ranges = []
    for record in records:
        least, most = (record.metrics.get(name) for name in (RATIO_LOW, RATIO_HIGH))
        if least is None or most is None or least.value is None or most.value is None:
            ranges.append(default)
        else:
            ranges.append(WeightRange(low=least.value, high=most.value, servers=least.source))
    distinct = list(dict.fromkeys(ranges)) or [default]
    return WeightRange(
        low=min(weights.low for weights in distinct),
        high=max(weights.high for weights in distinct),
        servers=" and ".join(dict.fromkeys(weights.servers for weights in distinct)),
    )
