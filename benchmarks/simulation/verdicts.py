"""How often verdicts are wrong where there is nothing, and right where there is something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.distributions import ALL, NORMAL, Distribution
from benchmarks.simulation.row import FAMILY_WISE, POWER, SimulationRow
from tuneoff.judge.stats import signed_rank
from tuneoff.judge.stats.location import depth, students_t
from tuneoff.judge.stats.sign_flip import generator

Floats = NDArray[np.float64]
Method = Callable[[Floats, float, float], tuple[Floats, Floats]]  # (differences, alpha, grid step) -> lows, highs

ADAPTERS = 6
FAMILY_SIZE = 15  # all pairs of six
ALPHA = 0.05 / FAMILY_SIZE
SIZES = (10, 20, 30)
CHUNK = 3_000  # rows at once
FAILING = 0.1  # share of runs


def signed_ranks(differences: Floats, alpha: float, step: float) -> tuple[Floats, Floats]:
    """Return the intervals that decide: what `tuneoff.judge.stats.paired.judge` uses, for many pairs at once."""
    parts = [signed_rank.bounds(part, alpha, step) for part in np.array_split(differences, max(1, len(differences) // CHUNK))]
    return np.concatenate([part.low for part in parts]), np.concatenate([part.high for part in parts])


def closed_signed_ranks(differences: Floats, alpha: float, step: float) -> tuple[Floats, Floats]:
    """Return them with all ties counted against the claim, as without a grid."""
    return signed_ranks(differences, alpha, 0.0)


def students(differences: Floats, alpha: float, step: float) -> tuple[Floats, Floats]:
    """Return the paired t-intervals."""
    return students_t(differences, 1 - alpha)


def signs(differences: Floats, alpha: float, step: float) -> tuple[Floats, Floats]:
    """Return the intervals of the median that invert the sign test."""
    ordered = np.sort(differences, axis=1)
    rank = depth(ordered.shape[1], 1 - alpha)
    return ordered[:, rank - 1], ordered[:, -rank]


METHODS: tuple[tuple[str, Method], ...] = (
    ("signed-rank (the verdict)", signed_ranks),
    ("signed-rank, ties against", closed_signed_ranks),
    ("paired t", students),
    ("median, sign test", signs),
)


def family_wise(
    method: Method, distribution: Distribution, n: int, families: int, alpha: float = ALPHA, failing: float = 0.0
) -> float:
    """Return in which share of families of six equal adapters any of the 15 pairs is called different."""
    draw = generator("family", distribution.name, str(n), str(failing))
    values = distribution.family(draw, families, ADAPTERS, n)
    if failing:
        values = np.where(draw.random(values.shape) < failing, np.inf, values)
    wins = np.zeros(families, dtype=bool)
    for first, second in combinations(range(ADAPTERS), 2):
        with np.errstate(invalid="ignore"):  # both failed
            differences = values[:, first] - values[:, second]
        lows, highs = method(np.where(np.isnan(differences), 0.0, differences), alpha, distribution.step)
        wins |= (lows > 0) | (highs < 0)
    return float(wins.mean())


def power(method: Method, distribution: Distribution, n: int, repetitions: int, size: float = 1.0) -> float:
    """Return in which share a difference of `size` standard deviations of the paired difference is found."""
    draw = generator("power", distribution.name, str(n), str(size))
    effect = distribution.standard_effect(size)
    lows, _ = method(distribution.differences(draw, repetitions, n, effect), ALPHA, distribution.step)
    return float((lows > 0).mean())


def called_equivalent(distribution: Distribution, n: int, repetitions: int, margin_in_sd: float, is_at_margin: bool) -> float:
    """Return how often a pair is called equivalent that differs by the margin itself, or by nothing."""
    draw = generator("equivalence", distribution.name, str(n), str(margin_in_sd), str(is_at_margin))
    if is_at_margin:
        margin = distribution.standard_effect(margin_in_sd)
    else:
        margin = margin_in_sd * float(distribution.differences(draw, 200_000, 1).std())
    differences = distribution.differences(draw, repetitions, n, margin if is_at_margin else 0.0)
    lows, highs = signed_ranks(differences, ALPHA, distribution.step)
    return float(((lows > -margin) & (highs < margin)).mean())


def null_rows(repetitions: int) -> Iterator[SimulationRow]:
    """Yield the family-wise share of wins where all six adapters are equal."""
    for distribution in ALL:
        for n in SIZES:
            share = family_wise(signed_ranks, distribution, n, repetitions)
            yield SimulationRow(
                what="any win of 15 pairs", distribution=distribution.name, n=n, share=share, required=FAMILY_WISE
            )
    for n in SIZES:
        share = family_wise(signed_ranks, NORMAL, n, repetitions, failing=FAILING)
        name = f"normal, {100 * FAILING:.0f} % of the runs fail"
        yield SimulationRow(what="any win of 15 pairs", distribution=name, n=n, share=share, required=FAMILY_WISE)


def skewed_rows(repetitions: int) -> Iterator[SimulationRow]:
    """Yield how often a single pair is called different whose differences are skewed, and centred in one of two ways."""
    reference = generator("skewed, reference").standard_normal((2, 2_000_000))
    centre = float(np.median(np.exp(reference).mean(axis=0)))
    for name, zero in (("exp(z), median 0", 1.0), ("exp(z), median of Walsh averages 0", centre)):
        for n in SIZES:
            values = np.exp(generator("skewed", str(n)).standard_normal((repetitions, n))) - zero
            lows, highs = signed_ranks(values, ALPHA, 0.0)
            share = float(((lows > 0) | (highs < 0)).mean())
            yield SimulationRow(what="a win of one pair", distribution=name, n=n, share=share)


def power_rows(repetitions: int) -> Iterator[SimulationRow]:
    """Yield how often a difference of 1 standard deviation is found."""
    for distribution in ALL:
        for n in SIZES:
            share = power(signed_ranks, distribution, n, repetitions)
            required = POWER if n == 20 else None
            yield SimulationRow(what="1 SD found", distribution=distribution.name, n=n, share=share, required=required)


def equivalence_rows(repetitions: int, margins: Sequence[float] = (1.0, 1.5)) -> Iterator[SimulationRow]:
    """Yield how often a pair is called equivalent, by the margin in standard deviations."""
    for distribution in ALL:
        for margin in margins:
            for is_at_margin in (True, False):
                what = f"margin {margin:g} SD, {'differs by the margin' if is_at_margin else 'equal'}"
                required = (0.0, ALPHA) if is_at_margin else None
                for n in SIZES:
                    share = called_equivalent(distribution, n, repetitions, margin, is_at_margin)
                    yield SimulationRow(what=what, distribution=distribution.name, n=n, share=share, required=required)


def method_rows(repetitions: int, n: int = 20) -> Iterator[tuple[SimulationRow, SimulationRow]]:
    """Yield for each method and distribution the family-wise share of null wins and the share of 1 SD that is found."""
    for name, method in METHODS:
        for distribution in ALL:
            null = family_wise(method, distribution, n, repetitions)
            share = power(method, distribution, n, repetitions)
            yield (
                SimulationRow(what=name, distribution=distribution.name, n=n, share=null),
                SimulationRow(what=name, distribution=distribution.name, n=n, share=share),
            )
