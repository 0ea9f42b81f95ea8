"""The verdict on the paired differences of two groups: one interval at the family's confidence decides.

Below and above speak of numbers; which of them is better, the caller knows. Why the signed-rank interval of Hodges and Lehmann,
and what it costs: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from tuneoff.judge.stats import signed_rank
from tuneoff.judge.stats.location import Interval, checked, coverage, depth, middle

if TYPE_CHECKING:
    from tuneoff.judge.stats.location import Floats

Relation = Literal["below", "above", "equivalent", "equivalent though different", "undecided"]
Estimator = Literal["hodges-lehmann", "median"]
SIGNED_RANK = "Hodges-Lehmann, exact signed-rank"
ROUNDING = 1e-12  # of the greatest size: equal values, once subtracted, may differ in their last bits
OFF_GRID = 1e-6  # of a step


class Judgement(NamedTuple):
    """What the differences one − other say, the interval that decided, and the two-sided p of the same test."""

    relation: Relation
    interval: Interval
    p: float


def judge(
    differences: Sequence[float],
    *,
    margin: float | None,
    alpha: float,
    grid_step: float = 0.0,
    rounding_scale: float = 0.0,
    estimator: Estimator = "hodges-lehmann",
) -> Judgement:
    """Judge paired differences by an interval of confidence 1 − alpha.

    | the interval | relation |
    |---|---|
    | excludes 0 and is not wholly within ±margin | below, above |
    | is wholly within ±margin and includes 0 | equivalent |
    | is wholly within ±margin and excludes 0 | equivalent though different |
    | else | undecided |

    Args:
        differences: one − other, one per seed; ±inf where exactly one of the two failed, 0 where both did.
        margin: the smallest difference that matters; None: nothing is called equivalent.
        alpha: of this one comparison: already divided by the family's size.
        grid_step: the smallest difference that the metric can have, 0 where there is none.
        rounding_scale: the greatest size of what was subtracted; what is rounding of it alone is no difference.
        estimator: "hodges-lehmann" is the verdict; "median" (sign test) shows how far it rests on that choice.

    Raises:
        ValueError: there is no difference, one is NaN, or alpha or margin is out of range.
    """
    clean, step, unit, tolerance = _prepared(differences, margin, alpha, grid_step, rounding_scale)
    if estimator == "median":
        bounds, method = _sign(clean, alpha), "median, sign test"
    else:
        bounds, method = signed_rank.bounds(clean[None, :], alpha, step, tolerance), SIGNED_RANK
    (judgement,) = _judgements(bounds, clean.size, method, margin, alpha, unit, tolerance, grid_step / 2)
    return judgement


def judge_without_each(
    differences: Sequence[float], *, margin: float | None, alpha: float, grid_step: float = 0.0, rounding_scale: float = 0.0
) -> tuple[Judgement, ...]:
    """Return what `judge` says with each difference left out in turn, by the estimator of the verdict, all at once.

    Raises:
        ValueError: as `judge`, or there are fewer than 2 differences.
    """
    import numpy as np

    clean, step, unit, tolerance = _prepared(differences, margin, alpha, grid_step, rounding_scale)
    n = clean.size
    if n < 2:
        raise ValueError(f"at least 2 differences must be given, but got {n}")
    rows = np.tile(clean, (n, 1))[~np.eye(n, dtype=bool)].reshape(n, -1)  # (n, n - 1)
    bounds = signed_rank.bounds(rows, alpha, step, tolerance)
    return tuple(_judgements(bounds, n - 1, SIGNED_RANK, margin, alpha, unit, tolerance, grid_step / 2))


def _prepared(
    differences: Sequence[float], margin: float | None, alpha: float, grid_step: float, rounding_scale: float
) -> tuple[Floats, float, float, float]:
    """Return differences without rounding, their grid step, the unit that they are in, and what is rounding in it."""
    if not 0 < alpha < 1:
        raise ValueError(f"`0 < alpha < 1` must hold, but got {alpha}")
    if margin is not None and not margin > 0:
        raise ValueError(f"`margin > 0` must hold, but got {margin}")
    array = checked(differences, "differences")
    clean, step = without_rounding(array, grid_step, rounding_scale)
    return clean, step, step if step > 0 else 1.0, 0.0 if step > 0 else rounding(array, rounding_scale)


def _judgements(
    bounds: signed_rank.Bounds,
    n: int,
    method: str,
    margin: float | None,
    alpha: float,
    unit: float,
    tolerance: float,
    half_step: float,
) -> Iterator[Judgement]:
    """Yield the judgement of each row, with its interval in the metric's unit, at least half a grid step to each side."""
    for row in zip(*bounds, strict=True):
        estimate, low, high, p = map(float, row)
        interval = Interval(
            estimate=estimate * unit,
            low=min(low * unit, estimate * unit - half_step),
            high=max(high * unit, estimate * unit + half_step),
            confidence=1 - alpha,
            n=n,
            method=method,
        )
        yield Judgement(relation=_relation(interval, margin, tolerance * unit), interval=interval, p=p)


def _relation(interval: Interval, margin: float | None, tolerance: float) -> Relation:
    excludes_zero = interval.low > 0 or interval.high < 0
    if margin is not None and interval.low > tolerance - margin and interval.high < margin - tolerance:
        return "equivalent though different" if excludes_zero else "equivalent"
    if not excludes_zero:
        return "undecided"
    return "above" if interval.low > 0 else "below"


def _sign(differences: Floats, alpha: float) -> signed_rank.Bounds:
    """Return the median with the order statistics that bound it without interpolation, and the p of the sign test."""
    import numpy as np

    ordered = np.sort(differences)
    n, k = ordered.size, depth(ordered.size, 1 - alpha)
    low, high = (ordered[k - 1], ordered[n - k]) if k else (-math.inf, math.inf)
    against = min(int((ordered <= 0).sum()), int((ordered >= 0).sum()))
    p = min(1.0, 1 - coverage(n, against + 1))
    rows = (np.array([value]) for value in (middle(ordered.tolist()), low, high, p))
    return signed_rank.Bounds(*rows)


def rounding(differences: Floats, scale: float = 0.0) -> float:
    """Return the size up to which a difference is rounding alone; `scale`: the greatest size of what was subtracted."""
    import numpy as np

    finite = np.abs(differences[np.isfinite(differences)])
    return ROUNDING * max(scale, float(finite.max(initial=0.0)))


def without_rounding(differences: Floats, grid_step: float, scale: float) -> tuple[Floats, float]:
    """Return the differences with equal ones made exactly equal, and the grid step they are on: 0 where they are on none.

    On a grid they are counted in steps, where sums and halves are exact; multiply by the step to get the unit back.
    """
    import numpy as np

    if grid_step > 0:
        steps = differences / grid_step
        whole = np.round(steps)
        finite = np.isfinite(steps)
        if np.all(np.abs(steps[finite] - whole[finite]) <= OFF_GRID):
            return whole, grid_step
    return _merged(differences, rounding(differences, scale)), 0.0


def _merged(differences: Floats, tolerance: float) -> Floats:
    """Return the differences where sizes that follow each other within the tolerance are one size, and 0 is one of them."""
    import numpy as np

    sizes = np.unique(np.append(np.abs(differences), 0.0))
    with np.errstate(invalid="ignore"):
        is_new = np.append(True, np.diff(sizes) > tolerance)
    firsts = sizes[is_new]
    places = np.searchsorted(firsts, np.abs(differences), side="right") - 1
    return np.asarray(np.sign(differences) * firsts[places])
