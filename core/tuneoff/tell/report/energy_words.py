"""Who used less energy, in words, and only where a model's weights cannot turn it round, in every one of several seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tuneoff.base.format import counted, listed
from tuneoff.judge.summary_rows import SummaryRow
from tuneoff.measure.energy_order import WeightRange, energy_order, widest

ENERGY = "energy.per_completed_trial"
LEAST_SEEDS = 3  # with fewer, chance alone often gives the same order in all of them


def energy_order_lines(rows: Sequence[SummaryRow]) -> list[str]:
    """Return who used less modelled energy than whom, per sampler, pruner and variant; emulated rows are in no order."""
    groups: dict[tuple[str, str, str], list[SummaryRow]] = {}
    for row in rows:
        figure = row.figures.get(ENERGY)
        if row.uses and not row.emulated and figure is not None and figure.kinds == {"estimated"}:
            groups.setdefault((row.variant, row.sampler, row.pruner), []).append(row)
    weights = widest(use.weights for group in groups.values() for row in group for use in row.uses)
    lines = [line for group in groups.values() if len(group) > 1 for line in _lines(group, weights)]
    if not lines:
        return []
    ratio = f"{weights.low:.3g} to {weights.high:.3g} W per reserved core over J per CPU second"
    return [
        f"Energy order per completed trial in these runs, modelled, told only if it holds in each of {LEAST_SEEDS} seeds or more "
        f"at every weight of {weights.servers} ({ratio}); a verdict beyond these seeds is in the report:",
        *(f"  {line}" for line in lines),
    ]


def _lines(group: Sequence[SummaryRow], weights: WeightRange) -> Iterator[str]:
    first = group[0]
    pruner = f" + {first.pruner}" if first.pruner != "none" else ""
    name = f"{first.sampler}{pruner} {first.variant}".rstrip()
    less: dict[int, dict[str, list[str]]] = {}  # by number of seeds, which may differ between pairs
    unclear, chance = [], []
    for one, other in combinations(group, 2):
        smaller = _less(one, other, weights)
        if _entry(one) == _entry(other):
            chance += [f"{one.label} and {other.label}"] if smaller is not None else []
        elif smaller is None:
            unclear.append(f"{one.label} and {other.label}")
        else:
            larger = other if smaller is one else one
            less.setdefault(len(one.uses), {}).setdefault(smaller.label, []).append(larger.label)
    for seeds, orders in sorted(less.items(), reverse=True):
        if seeds >= LEAST_SEEDS:
            for label, others in orders.items():
                yield f"{name} ({seeds} seeds): {label} used less energy than {listed(others)} at every such weight"
        else:
            seen = "; ".join(f"{label} used less than {listed(others)}" for label, others in orders.items())
            few = f"from {counted(seeds, 'seed')} no energy order is claimed"
            yield f"{name}: {few}; in {'it' if seeds == 1 else 'both'} {seen}"
    if chance:
        yield f"{name}: {'; '.join(chance)} are the same and yet in one order in every seed: chance alone makes orders here"
    if unclear:
        pairs = f"between {unclear[0]}" if len(unclear) == 1 else f"within any of these pairs: {'; '.join(unclear)}"
        yield f"{name}: no energy order can be claimed {pairs}"


def _entry(row: SummaryRow) -> str:
    """Return the label without the number of its repetition: an A/A pair is of one entry, and its difference is noise."""
    return row.label.removesuffix(f"#{row.replicate + 1}")


def _less(one: SummaryRow, other: SummaryRow, weights: WeightRange) -> SummaryRow | None:
    """Return the row that used less in every seed that both have, and both have the same seeds; else None."""
    theirs = {use.seed: use for use in other.uses}
    if {use.seed for use in one.uses} != set(theirs):
        return None
    found = {
        energy_order(use.cpu_seconds, use.core_seconds, theirs[use.seed].cpu_seconds, theirs[use.seed].core_seconds, weights).less
        for use in one.uses
    }
    return {"a": one, "b": other}.get(found.pop() or "") if len(found) == 1 else None
