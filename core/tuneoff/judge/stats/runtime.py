"""Runtimes to a target, with runs that never reach it."""

from __future__ import annotations

import math
from collections.abc import Sequence


def ecdf(runtimes: Sequence[float], n_total: int) -> tuple[tuple[float, float], ...]:
    """Return (runtime, share of all runs that reached the target by then), one step per different runtime.

    The share is of `n_total` runs: failures, given as inf or left out, are in the denominator, so with one it never reaches 1.
    It is a right-continuous step function: plot it with steps.

    Raises:
        ValueError: there are more runtimes than runs, or one is NaN.
    """
    if len(runtimes) > n_total or n_total < 1:
        raise ValueError(f"`len(runtimes) <= n_total` and `n_total >= 1` must hold, but got {len(runtimes)} and {n_total}")
    if any(math.isnan(runtime) for runtime in runtimes):
        raise ValueError("a runtime must not be NaN: give inf where the target was not reached")
    reached = sorted(runtime for runtime in runtimes if math.isfinite(runtime))
    last = {runtime: (count + 1) / n_total for count, runtime in enumerate(reached)}
    return tuple(last.items())


def ert(spent: Sequence[float], reached: Sequence[bool]) -> float:
    """Return the expected runtime to the target: what all runs spent, successful or not, per success; inf without one.

    Args:
        spent: of each run until it reached the target, or, where it did not, in total.
        reached: whether it did.

    Raises:
        ValueError: the two differ in length.

    Source: N. Hansen et al., arXiv 1605.03560.
    """
    if len(spent) != len(reached):
        raise ValueError(f"`len(spent) == len(reached)` must hold, but got {len(spent)} and {len(reached)}")
    successes = sum(reached)
    return math.fsum(spent) / successes if successes else math.inf
