"""Energy of a run's parts by the slots' own meters, or by the model of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tuneoff.measure.attribution.intervals import AttemptKey, Attributed, EnergyPiece, Share, held, metered
from tuneoff.measure.attribution.slots import SLOT_PARTS, SlotUse
from tuneoff.measure.attribution.tree import PARTS
from tuneoff.measure.attribution.uses import Uses
from tuneoff.record.samples.schema import Coefficients
from tuneoff.record.samples.series import EnergySeries

SLOTS_ONLY = "the meter sees slots only"
OTHER_HOSTS = "trials ran on other hosts than the one that was metered"
NOT_READ = "the CPU time of an attempt is not known: it was killed, and no sample saw its process"


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
