"""What energy is attributed by: everybody's CPU time and reserved time in one run; and the methods that do so.

By counters of the node, by the slots' own meters, or by the model of a server.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuneoff.measure.attribution.attempts import CpuUse, cpu_use
from tuneoff.measure.attribution.slots import (
    SLOT_PARTS,
    Attributed,
    CpuPiece,
    EnergyPiece,
    Share,
    SlotUse,
    clipped,
    core_seconds,
    cpu_seconds,
    held,
    merged,
    metered,
    slot_uses,
)
from tuneoff.measure.attribution.tree import PARTS, TreeUse, tree_use
from tuneoff.measure.presence import Presence
from tuneoff.measure.spans import AttemptKey, Interval, foreign_attempts, last_ns
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import Coefficients, EnergySeries

NO_USE = "no use of processes was sampled"
NO_COORDINATOR = "no sample saw the coordinator"
NO_TEST = "the test's CPU time is not known"
NOT_TESTED = "no model was tested"
UNREAD = "a process did not say what it had used before its first trial"
SLOTS_ONLY = "the meter sees slots only"
OTHER_HOSTS = "trials ran on other hosts than the one that was metered"
NOT_READ = "the CPU time of an attempt is not known: it was killed, and no sample saw its process"
NO_BASELINE = "the idle power of the host is not known, so its energy cannot be split"
SHORTEST_NS = 1_000_000_000  # between two moments at which energy is shared out
ATTRIBUTED = ("trials", "overhead", "idle", "outside", *PARTS, "unreserved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Everybody's use from 0 to `end_ns`. `parts` holds CPU time of `overhead` and of `tree.PARTS`, where known."""

    end_ns: int
    cores: float  # of a slot
    host_cores: int
    slots: list[SlotUse]
    cpu: CpuUse
    tree: TreeUse
    parts: dict[str, list[CpuPiece]]
    node: list[CpuPiece] | None
    foreign: frozenset[AttemptKey]  # attempts on other hosts than the sampled one
    reasons: dict[str, str]  # of parts that are not known
    names: dict[str, str]  # of the processes that train: to which part their time outside of attempts belongs

    @property
    def reserved_cores(self) -> float:
        """Cores that the slots reserve together."""
        return len(self.slots) * self.cores

    def trial_cpu_seconds(self) -> float | None:
        """Return the CPU seconds of all attempts, None where those of one are unknown."""
        if self.cpu.unknown:
            return None
        return sum(cpu_seconds(pieces) for pieces in self.cpu.attempts.values())

    def job_cpu_seconds(self, within: Interval | None = None) -> float | None:
        """Return the CPU seconds of the job, all of them or those in an interval; None where a part is unknown."""
        names = ("overhead", "coordinator", "services", "test")
        if self.cpu.unknown or any(name in self.reasons for name in names[:3]):
            return None
        used = (*self.cpu.attempts.values(), *(self.parts.get(name, []) for name in names))
        return sum(cpu_seconds(pieces if within is None else clipped(pieces, within)) for pieces in used)

    def trial_core_seconds(self) -> float:
        """Return the reserved core seconds of all attempts while they were busy."""
        return self.cores * sum(core_seconds(shares) for slot in self.slots for shares in slot.busy.values())

    def core_seconds(self, within: Interval | None = None) -> float:
        """Return the reserved core seconds of the slots, busy or not: of the run, or of an interval."""
        start, end = within or (0, self.end_ns)
        return self.reserved_cores * (end - start) / 1e9


def uses_of(
    run: RunRecord, presence: Presence, samples: Samples | None, *, is_refined: bool = False, is_extrapolated: bool = False
) -> Uses:
    """Return everybody's use in a run; without samples, that of the trials alone."""
    end_ns = last_ns(run)
    tree = tree_use(run, samples) if samples is not None else TreeUse()
    cpu = cpu_use(run, tree.sampled, is_refined=is_refined, is_extrapolated=is_extrapolated)
    window = (0, end_ns)
    reasons: dict[str, str] = {}
    parts: dict[str, list[CpuPiece]] = {}
    names = {name: "coordinator" if name in run.coordinators else "overhead" for name in cpu.around}
    if tree.sampled.times:
        parts = {name: clipped(tree.parts[name], window) for name in PARTS}
        parts["overhead"] = []
        for name, pieces in cpu.around.items():
            parts[names[name]].extend(clipped(pieces, window))
        if not cpu.is_around_known:
            reasons["overhead"] = UNREAD
        if not tree.saw_coordinator and "coordinator" not in names.values():
            reasons["coordinator"] = NO_COORDINATOR
        if not parts["test"]:
            reasons["test"] = NO_TEST if run.test is not None else NOT_TESTED
    else:
        reasons = dict.fromkeys(("overhead", *PARTS), NO_USE)
    for name in reasons:
        parts.pop(name, None)
    host = samples.header.host if samples is not None else ""
    return Uses(
        end_ns=end_ns,
        cores=run.run_spec().experiment.workers.cpus,
        host_cores=samples.header.cpus if samples is not None else 0,
        slots=slot_uses(run, presence, end_ns),
        cpu=cpu,
        tree=tree,
        parts=parts,
        node=clipped(tree.node, window) if tree.sampled.times else None,
        foreign=foreign_attempts(run, host),
        reasons=reasons,
        names=names,
    )


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
