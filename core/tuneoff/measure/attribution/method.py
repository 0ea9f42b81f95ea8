"""How energy is attributed: what a second of CPU time and one of a reserved core cost, and everybody's use of both in one run.

Both costs are constants of the model; else they follow from the node's counters, whose idle power is that of its cores and whose
rest that of its CPU time.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tuneoff.measure.attribution.attempts import CpuUse, cpu_use
from tuneoff.measure.attribution.pieces import EnergyAccount, EnergyPiece, TimePiece, clipped, merged, seconds
from tuneoff.measure.attribution.tree import PARTS, TreeUse, tree_use
from tuneoff.measure.presence import Presence
from tuneoff.measure.slots import SlotUse, slot_uses, slot_window
from tuneoff.measure.spans import AttemptKey, Interval, foreign_attempts, last_ns
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import EnergySeries

NO_USE = "no use of processes was sampled"
NO_COORDINATOR = "no sample saw the coordinator"
UNREAD = "a process did not report its CPU time before its first trial"
OTHER_HOSTS = "trials ran on other hosts than the one that was metered"
NOT_READ = "the CPU time of an attempt is not known: it was killed, and no sample saw its process"
NO_BASELINE = "the idle power of the host is not known, so its energy cannot be split"
SHORTEST_NS = 1_000_000_000  # between two moments at which energy is shared out
ATTRIBUTED = ("trials", "overhead", "idle", "outside", *PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Everybody's use from 0 to `end_ns`. `parts` holds CPU time of `overhead` and of `tree.PARTS`, where known."""

    end_ns: int
    cores: float  # of a slot
    host_cores: int
    slots: list[tuple[SlotUse, dict[str, list[TimePiece]]]]  # with its `parts`
    cpu: CpuUse
    tree: TreeUse
    parts: dict[str, list[TimePiece]]
    foreign: frozenset[AttemptKey]  # attempts on other hosts than the sampled one
    reasons: dict[str, str]  # of parts that are not known

    @property
    def reserved_cores(self) -> float:
        """Cores that the slots reserve together."""
        return len(self.slots) * self.cores

    def job_cpu_seconds(self, within: Interval | None = None) -> float | None:
        """Return the CPU seconds of the job, all of them or those in an interval; None where a part is unknown."""
        if self.cpu.unknown or "overhead" in self.reasons or "services" in self.reasons:
            return None
        used = (*self.cpu.attempts.values(), self.parts["overhead"], self.parts["services"])
        return sum(seconds(pieces if within is None else clipped(pieces, within)) for pieces in used)


def uses_of(run: RunRecord, presence: Presence, samples: Samples | None, *, is_modelled: bool = False) -> Uses:
    """Return everybody's use in a run; without samples, that of the trials alone."""
    end_ns = last_ns(run)
    tree = tree_use(run, samples) if samples is not None else TreeUse()
    cpu = cpu_use(run, tree.sampled, is_modelled=is_modelled)
    window = (0, end_ns)
    reasons: dict[str, str] = {}
    parts: dict[str, list[TimePiece]] = {}
    if tree.sampled.times:
        parts = {"overhead": [], **{name: clipped(tree.parts[name], window) for name in PARTS}}
        for name, pieces in cpu.around.items():
            parts["services" if name in run.coordinators else "overhead"].extend(clipped(pieces, window))
        if not cpu.is_around_known:
            reasons["overhead"] = UNREAD
        if not tree.saw_coordinator and not any(name in run.coordinators for name in cpu.around):
            reasons["services"] = NO_COORDINATOR
    else:
        reasons = dict.fromkeys(("overhead", *PARTS), NO_USE)
    for name in reasons:
        parts.pop(name, None)
    return Uses(
        end_ns=end_ns,
        cores=run.run_spec().experiment.workers.cpus,
        host_cores=samples.header.cpus if samples is not None else 0,
        slots=[(slot, slot.parts(slot_window(run), end_ns)) for slot in slot_uses(presence)],
        cpu=cpu,
        tree=tree,
        parts=parts,
        foreign=foreign_attempts(run, samples.header.host if samples is not None else ""),
        reasons=reasons,
    )


@dataclass(frozen=True, slots=True)
class Rates:
    """What a nanosecond of CPU time and one of a core cost in J, between two moments of a grid each."""

    grid: Sequence[int]
    of_cpu: Sequence[float]
    of_core: Sequence[float]


def by_rates(rates: Rates, uses: Uses) -> EnergyAccount:
    """Return the energy of trials and parts: CPU time by the one rate, and the slots' reserved time by the other.

    `others`: what is not the run's, the cores that no slot reserves included.
    """
    by_cpu = {key: priced(pieces, rates.grid, rates.of_cpu) for key, pieces in uses.cpu.attempts.items()}
    by_core: dict[AttemptKey, list[EnergyPiece]] = {}
    parts = {name: priced(pieces, rates.grid, rates.of_cpu) for name, pieces in uses.parts.items()}
    parts.update({name: parts.get(name, []) for name in ("overhead", "idle", "outside")})
    per_slot = [rate * uses.cores for rate in rates.of_core]
    for slot, slot_parts in uses.slots:
        by_core.update((key, priced(held, rates.grid, per_slot)) for key, held in slot.busy.items() if key in by_cpu)
        for name, held in slot_parts.items():
            parts[name].extend(priced(held, rates.grid, per_slot))
    free = [TimePiece(0, rates.grid[-1], (_cores(uses) - uses.reserved_cores) * rates.grid[-1])]
    parts.setdefault("others", []).extend(priced(free, rates.grid, rates.of_core))
    reasons = dict(uses.reasons)
    if uses.cpu.unknown:
        reasons["trials"] = NOT_READ
    return EnergyAccount(
        attempts=merged(by_cpu, by_core),
        parts={name: pieces for name, pieces in parts.items() if name not in reasons},
        reasons=reasons,
    )


def by_counters(meters: Sequence[EnergySeries], idle_watts: float | None, uses: Uses) -> EnergyAccount:
    """Return the node's energy by its counters, and whose it was.

    Static is the idle power of the host, and never more than what it used between two moments; dynamic is the rest. A CPU
    second costs the dynamic energy of its interval divided by the host's CPU seconds. Nothing is scaled to fit: where the
    parts' CPU seconds are more than the host's, their energy is more than the node's, and the residual is negative.
    """
    grid = grid_of(uses)
    totals = [sum(meter.energy(start, end) for meter in meters) for start, end in itertools.pairwise(grid)]
    node = on_grid(grid, totals)
    reason = OTHER_HOSTS if uses.foreign else uses.reasons.get("others")
    if reason is not None or idle_watts is None:
        return EnergyAccount(node=node, reasons=dict.fromkeys(ATTRIBUTED, reason or NO_BASELINE))
    static, dynamic = split(grid, totals, idle_watts)
    host = [0.0] * len(totals)
    for index, piece in _cut(clipped(uses.tree.node, (0, uses.end_ns)), grid):
        host[index] += piece.time_ns
    rates = Rates(
        grid,
        [energy / cpu if cpu > 0 else 0.0 for energy, cpu in zip(dynamic, host, strict=True)],
        [energy / (_cores(uses) * (end - start)) for energy, (start, end) in zip(static, itertools.pairwise(grid), strict=True)],
    )
    return replace(by_rates(rates, uses), node=node)


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


def on_grid(grid: Sequence[int], energies: Sequence[float]) -> list[EnergyPiece]:
    """Return the energy of each interval as a piece."""
    return [EnergyPiece(start, end, energy) for (start, end), energy in zip(itertools.pairwise(grid), energies, strict=True)]


def priced(used: Iterable[TimePiece], grid: Sequence[int], rates: Sequence[float]) -> list[EnergyPiece]:
    """Return the energy of times by a rate in each interval, cut where the rate changes."""
    return [EnergyPiece(start, end, time_ns * rates[index]) for index, (start, end, time_ns) in _cut(used, grid)]


def _cores(uses: Uses) -> float:
    return max(float(uses.host_cores), uses.reserved_cores)


def _cut(pieces: Iterable[TimePiece], grid: Sequence[int]) -> Iterator[tuple[int, TimePiece]]:
    """Yield the pieces cut at the grid, with the index of their interval."""
    last = len(grid) - 2
    for piece in pieces:
        start, end, time_ns = piece
        index = min(max(0, bisect.bisect_right(grid, start) - 1), last)
        at = start
        while index < last and end > grid[index + 1]:
            until = grid[index + 1]
            yield index, TimePiece(at, until, time_ns * (until - at) / (end - start))
            at = until
            index += 1
        yield index, piece if at == start else TimePiece(at, end, time_ns * (end - at) / (end - start))
