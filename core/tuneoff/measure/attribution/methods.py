"""Energy of a run's parts: by counters of the node, by the slots' own meters, or by the model of a server."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tuneoff.measure.attribution.slots import (
    SLOT_PARTS,
    Attributed,
    CpuPiece,
    EnergyPiece,
    Share,
    SlotUse,
    held,
    merged,
    metered,
)
from tuneoff.measure.attribution.tree import PARTS
from tuneoff.measure.attribution.uses import Uses
from tuneoff.measure.spans import AttemptKey
from tuneoff.record.samples.schema import Coefficients, EnergySeries

SLOTS_ONLY = "the meter sees slots only"
OTHER_HOSTS = "trials ran on other hosts than the one that was metered"
NOT_READ = "the CPU time of an attempt is not known: it was killed, and no sample saw its process"
NO_BASELINE = "the idle power of the host is not known, so its energy cannot be split"
SHORTEST_NS = 1_000_000_000  # between two moments at which energy is shared out
ATTRIBUTED = ("trials", "overhead", "idle", "outside", *PARTS, "unreserved")


def by_counters(meters: Sequence[EnergySeries], idle_watts: float | None, uses: Uses) -> Attributed:
    """Return the node's energy by its counters, and whose it was.

    Static is the idle power of the host, and never more than what it used between two samples; dynamic is the rest. A CPU
    second costs the dynamic energy of its interval divided by the host's CPU seconds. Nothing is scaled to fit: where the
    parts' CPU seconds are more than the host's, their energy is more than the node's, and the residual is negative.
    """
    grid = grid_of(uses)
    totals = [sum(meter.energy(start, end) for meter in meters) for start, end in itertools.pairwise(grid)]
    node = _on(grid, totals)
    reason = OTHER_HOSTS if uses.foreign else uses.reasons.get("other") if uses.node is None else None
    reason = NO_BASELINE if reason is None and idle_watts is None else reason
    if reason is not None or uses.node is None or idle_watts is None:
        return Attributed(attempts={}, parts={}, node=node, reasons=dict.fromkeys(ATTRIBUTED, reason or NO_BASELINE))
    static, dynamic = split(grid, totals, idle_watts)
    prices = _CpuCosts(grid, dynamic, uses.node)
    by_use = {key: prices.pieces(pieces) for key, pieces in uses.cpu.attempts.items()}
    parts = {name: prices.pieces(pieces) for name, pieces in uses.parts.items()}
    parts.update({name: parts.get(name, []) for name in ("overhead", "idle", "outside")})
    idle = EnergySeries(grid, [0.0, *itertools.accumulate(static)])
    most = max(float(uses.host_cores), uses.reserved_cores)
    by_slot: dict[AttemptKey, list[EnergyPiece]] = {}
    for slot in uses.slots:
        for key, shares in slot.busy.items():
            if key in by_use:
                by_slot[key] = list(metered(shares, idle, uses.cores / most))
        for name, shares in slot.parts.items():
            parts[name].extend(metered(shares, idle, uses.cores / most))
    parts["unreserved"] = _on(grid, [energy * (1 - uses.reserved_cores / most) for energy in static])
    reasons = dict(uses.reasons)
    if uses.cpu.unknown:
        reasons["trials"] = NOT_READ
    for name in reasons:
        parts.pop(name, None)
    return Attributed(attempts=merged(by_use, by_slot), parts=parts, node=node, reasons=reasons)


def grid_of(uses: Uses) -> list[int]:
    """Return the moments between which energy is shared out: the run's start, its end, and samples of use a second apart.

    The kernel tells CPU time in ticks of 10 ms: over a second they are small.
    """
    end = max(1, uses.end_ns)
    grid = [0]
    for t in uses.tree.sampled.times:
        if t >= grid[-1] + SHORTEST_NS and t + SHORTEST_NS <= end:
            grid.append(t)
    return [*grid, end]


def split(grid: Sequence[int], totals: Sequence[float], idle_watts: float) -> tuple[list[float], list[float]]:
    """Return the static and the dynamic energy of each interval."""
    static = [
        min(total, idle_watts * (end - start) / 1e9) for total, (start, end) in zip(totals, itertools.pairwise(grid), strict=True)
    ]
    return static, [total - idle for total, idle in zip(totals, static, strict=True)]


def _on(grid: Sequence[int], energies: Sequence[float]) -> list[EnergyPiece]:
    return [EnergyPiece(start, end, energy) for (start, end), energy in zip(itertools.pairwise(grid), energies, strict=True)]


class _CpuCosts:
    """What a CPU nanosecond costs in each interval, in J."""

    def __init__(self, grid: Sequence[int], dynamic: Sequence[float], host: Iterable[CpuPiece]) -> None:
        self._grid = grid
        self._last = len(dynamic) - 1
        by_host = [0.0] * len(dynamic)
        for index, _, _, cpu in self._cut(host):
            by_host[index] += cpu
        self._prices = [energy / cpu if cpu > 0 else 0.0 for energy, cpu in zip(dynamic, by_host, strict=True)]

    def pieces(self, used: Iterable[CpuPiece]) -> list[EnergyPiece]:
        """Return the energy of CPU time."""
        return [EnergyPiece(start, end, cpu * self._prices[index]) for index, start, end, cpu in self._cut(used)]

    def _cut(self, pieces: Iterable[CpuPiece]) -> Iterator[tuple[int, int, int, float]]:
        """Yield the pieces cut at the grid, with the index of their interval."""
        grid, last = self._grid, self._last
        for start, end, cpu in pieces:
            index = min(max(0, bisect.bisect_right(grid, start) - 1), last)
            at = start
            while index < last and end > grid[index + 1]:
                until = grid[index + 1]
                yield index, at, until, cpu * (until - at) / (end - start)
                at = until
                index += 1
            yield index, at, end, cpu if at == start else cpu * (end - at) / (end - start)


def by_slot_meters(slots: Iterable[SlotUse], series: Mapping[str, EnergySeries]) -> Attributed:
    """Return the energy of slots that have a meter each (domains `slot-N`): nothing has to be attributed."""
    attempts: dict[AttemptKey, list[EnergyPiece]] = {}
    parts: dict[str, list[EnergyPiece]] = {name: [] for name in SLOT_PARTS}
    for slot in slots:
        meter = series[f"slot-{slot.slot}"]
        for key, shares in slot.busy.items():
            attempts[key] = list(metered(shares, meter))
        for name, shares in slot.parts.items():
            parts[name].extend(metered(shares, meter))
    reasons = dict.fromkeys((*PARTS, "unreserved", "node"), SLOTS_ONLY)
    return Attributed(attempts=attempts, parts=parts, node=None, reasons=reasons)


def by_model(coefficients: Coefficients, uses: Uses) -> Attributed:
    """Return E = joules per CPU second · CPU seconds + watts per core · reserved core seconds, of each part."""
    per_cpu_ns = coefficients.joules_per_cpu_second / 1e9
    per_slot_ns = coefficients.watts_per_core * uses.cores / 1e9
    reasons = dict(uses.reasons)
    dynamic = {
        key: [EnergyPiece(start, end, used * per_cpu_ns) for start, end, used in pieces]
        for key, pieces in uses.cpu.attempts.items()
    }
    attempts: dict[AttemptKey, list[EnergyPiece]] = dict(dynamic)
    parts: dict[str, list[EnergyPiece]] = {name: [] for name in SLOT_PARTS}
    for slot in uses.slots:
        for key, shares in slot.busy.items():
            if key in dynamic:
                attempts[key] = _together(dynamic[key], shares, per_slot_ns)
        for name, shares in slot.parts.items():
            parts[name].extend(held(shares, per_slot_ns))
    for name, used in uses.parts.items():
        parts.setdefault(name, []).extend(EnergyPiece(start, end, cpu * per_cpu_ns) for start, end, cpu in used)
    if "overhead" in reasons:
        del parts["overhead"]
    if uses.cpu.unknown:
        reasons["trials"] = NOT_READ
    node: list[EnergyPiece] | None = None
    if uses.node is None or uses.foreign:
        reasons.update(dict.fromkeys(("unreserved", "node"), OTHER_HOSTS if uses.foreign else reasons["other"]))
    else:
        seconds = uses.end_ns / 1e9
        free = max(0.0, uses.host_cores - uses.reserved_cores)
        parts["unreserved"] = [EnergyPiece(0, uses.end_ns, coefficients.watts_per_core * free * seconds)]
        node = [EnergyPiece(start, end, cpu * per_cpu_ns) for start, end, cpu in uses.node]
        node.append(EnergyPiece(0, uses.end_ns, coefficients.watts_per_core * uses.host_cores * seconds))
    return Attributed(attempts=attempts, parts=parts, node=node, reasons=reasons)


def _together(dynamic: list[EnergyPiece], shares: list[Share], joules_per_ns: float) -> list[EnergyPiece]:
    """Return an attempt's energy by CPU time and by reserved time; in one piece each where the attempt had its slot alone."""
    if any(share != 1.0 for _, _, share in shares):
        return sorted([*dynamic, *held(shares, joules_per_ns)])
    found: list[EnergyPiece] = []
    index = 0
    for start, end, _ in shares:
        at = start
        while index < len(dynamic) and dynamic[index].end_ns <= end:
            begin, finish, energy = dynamic[index]
            if begin > at:
                found.append(EnergyPiece(at, begin, (begin - at) * joules_per_ns))
            found.append(EnergyPiece(begin, finish, energy + (finish - begin) * joules_per_ns))
            at = finish
            index += 1
        if at < end:
            found.append(EnergyPiece(at, end, (end - at) * joules_per_ns))
    return [*found, *dynamic[index:]]
