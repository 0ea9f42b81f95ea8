"""The simulations: they simulate the very functions, hold what docs/statistics.md states, and catch what does not hold."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.simulation import coverage, tasks, verdicts
from benchmarks.simulation.distributions import ALL, GRID, LOGNORMAL, NORMAL, SPIKED, STATED, TIES, Distribution
from benchmarks.simulation.row import FAMILY_WISE, POWER, SimulationRow, coverage_range, table
from benchmarks.simulation.tasks import File, Shape
from tuneoff.judge.stats.location import median
from tuneoff.judge.stats.paired import judge
from tuneoff.judge.stats.sign_flip import generator

pytest.importorskip("scipy")


def within(share: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= share <= bounds[1]


@pytest.mark.parametrize("n", [3, 10, 20])
def test_the_simulated_intervals_are_those_that_are_shown(n: int) -> None:
    values = np.sort(LOGNORMAL.values(generator("same", str(n)), (3, n)), axis=1)
    estimates, lows, highs = coverage.medians(values, 0.95)
    for row, estimate, low, high in zip(values, estimates, lows, highs, strict=True):
        found = median(row.tolist(), 0.95)
        assert (found.estimate, found.low, found.high) == pytest.approx((estimate, low, high))


@pytest.mark.parametrize("distribution", ALL, ids=lambda distribution: distribution.name)
def test_the_simulated_verdicts_are_those_that_are_given(distribution: Distribution) -> None:
    differences = distribution.differences(generator("verdicts"), 30, 12, distribution.standard_effect() * 1.5)
    lows, highs = verdicts.signed_ranks(differences, verdicts.ALPHA, distribution.step)
    step = distribution.step / 360
    unit = step or 1.0
    wins = 0
    for row, low, high in zip(differences, lows, highs, strict=True):
        found = judge((row * unit).tolist(), margin=None, alpha=verdicts.ALPHA, grid_step=step, rounding_scale=1.0)
        assert (found.relation == "above", found.relation == "below") == (low > 0, high < 0)
        assert found.interval.low == pytest.approx(min(low * unit, found.interval.estimate - step / 2))
        wins += found.relation == "above"
    assert 0 < wins < len(differences)


def test_a_cell_out_of_its_range_is_marked() -> None:
    rows = [
        SimulationRow(what="a", distribution="d", n=n, share=share, required=(0.92, 0.97)) for n, share in ((10, 0.95), (20, 0.9))
    ]
    assert [row.holds for row in rows] == [True, False]
    above = SimulationRow(what="a", distribution="d", n=2, share=0.06, required=(0, 0.075), upper=0.08)
    assert not above.holds
    assert table(rows).splitlines()[-1] == "| a | d | 95.00 | 90.00 (!) | 92 to 97 |"


def test_a_percentile_bootstrap_of_five_values_is_caught() -> None:
    """Its 95 % interval covers in less than 92 %; that which is shown holds for the same samples."""
    drawn = generator("bootstrap").integers(0, 5, (399, 5))

    def bootstrapped(ordered: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        lows, highs = np.quantile(ordered[:, drawn].mean(axis=2), ((1 - confidence) / 2, (1 + confidence) / 2), axis=1)
        return ordered.mean(axis=1), lows, highs

    shares = [coverage.share_covered(method, NORMAL, 0.0, 5, 2_000) for method in (bootstrapped, coverage.medians)]
    assert [within(share, coverage_range(False)) for share in shares] == [False, True]


@pytest.mark.slow
def test_tasks_that_share_streams_are_caught_where_they_are_taken_for_independent() -> None:
    """The audit's case: equal searches whose tasks reuse the draws of a seed; the units that flip together bear it."""
    shape = Shape(adapters=4, tasks=12, seeds=10, streams="shared")
    shares = {told: tasks.wrong(File(shape, "time", streams=told), 60) / 60 for told in ("shared", "own")}
    assert shares["shared"] <= tasks.MOST_WRONG < 0.4 < shares["own"]


def test_a_test_that_finds_too_little_and_a_family_without_correction_are_caught() -> None:
    assert not within(verdicts.family_wise(verdicts.signed_ranks, NORMAL, 10, 1_000, alpha=0.05), FAMILY_WISE)
    assert not within(verdicts.power(verdicts.signs, NORMAL, 20, 3_000), POWER)
    assert not within(verdicts.power(verdicts.closed_signed_ranks, TIES, 20, 3_000), POWER)


@pytest.mark.slow
@pytest.mark.parametrize("distribution", STATED, ids=lambda distribution: distribution.name)
def test_intervals_of_95_percent_cover_in_92_to_97_percent(distribution: Distribution) -> None:
    truth = coverage.true_median(distribution)
    for n in coverage.SIZES:
        share = coverage.share_covered(coverage.medians, distribution, truth, n, 10_000)
        assert within(share, coverage_range(distribution.step > 0)), (n, share)


@pytest.mark.slow
@pytest.mark.parametrize("distribution", [NORMAL, SPIKED, GRID, TIES], ids=lambda distribution: distribution.name)
def test_equal_adapters_win_in_at_most_5_percent_of_families(distribution: Distribution) -> None:
    assert within(verdicts.family_wise(verdicts.signed_ranks, distribution, 20, 10_000), FAMILY_WISE)


@pytest.mark.slow
def test_one_standard_deviation_is_found_in_80_percent_of_20_seeds() -> None:
    for distribution in ALL:
        assert within(verdicts.power(verdicts.signed_ranks, distribution, 20, 10_000), POWER), distribution.name


@pytest.mark.slow
def test_a_difference_of_the_margin_is_rarely_called_equivalent() -> None:
    for distribution in ALL:
        share = verdicts.called_equivalent(distribution, 20, 10_000, margin_in_sd=1.0, is_at_margin=True)
        assert share <= verdicts.ALPHA, distribution.name
    equal = verdicts.called_equivalent(NORMAL, 20, 10_000, margin_in_sd=1.5, is_at_margin=False)
    assert equal > 0.9  # and it is called so where it is


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["time", "quality"])
def test_files_of_equal_adapters_rarely_hold_a_claim_across_tasks(asked: tasks.Asked) -> None:
    """300 files and an interval of their share: the whole simulation has 1 000 in each of its cells."""
    file = File(Shape(adapters=6, tasks=12, seeds=3), asked)
    assert tasks.wrong(file, 300) / 300 <= tasks.MOST_WRONG


@pytest.mark.slow
def test_a_ratio_of_one_and_a_half_in_all_tasks_is_found_with_three_seeds() -> None:
    assert all(row.holds for row in tasks.power_rows(200))
