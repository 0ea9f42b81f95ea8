"""Right-continuous step functions over several runs. Nothing is interpolated."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuneoff.judge.stats.failures_as_infinity import middle

Steps = Sequence[tuple[float, float]]  # (from here on, value), in order


def order_statistic(values: Sequence[float], share: float) -> float:
    """Return the value that at least `share` of the values do not exceed: one of them, so an infinite one mixes with none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def combined(runs: Sequence[Steps], worst: float, most: int = 400) -> list[tuple[float, float, float, float]]:
    """Return (x, median, lower quartile, upper quartile) at each point where a run improves, at most at so many of them.

    A run has `worst`, ±inf, before its first improvement; one that failed has no step at all.
    """
    points = sorted({x for steps in runs for x, _ in steps})
    points = [points[place] for place in spread_out(len(points), most)]
    places = [0] * len(runs)
    values = [worst] * len(runs)
    found: list[tuple[float, float, float, float]] = []
    for x in points:
        for index, steps in enumerate(runs):
            while places[index] < len(steps) and steps[places[index]][0] <= x:
                values[index] = steps[places[index]][1]
                places[index] += 1
        found.append((x, middle(values), order_statistic(values, 0.25), order_statistic(values, 0.75)))
    return found


def spread_out(count: int, most: int) -> list[int]:
    """Return at most `most` places among `count`, evenly, with the first and the last."""
    if count <= most:
        return list(range(count))
    if most == 1:
        return [0]
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})
