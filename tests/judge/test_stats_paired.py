"""Verdicts on paired differences: what decides, failures, rounding, grids, exactness and properties."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneoff.judge.stats import signed_rank
from tuneoff.judge.stats.location import middle
from tuneoff.judge.stats.paired import Estimator, Relation, judge, judge_without_each, without_rounding
from tuneoff.judge.stats.sign_flip import generator

pytestmark = pytest.mark.slow

stats = pytest.importorskip("scipy.stats")

ALPHA = 0.05 / 15
ESTIMATORS: tuple[Estimator, ...] = ("hodges-lehmann", "median")
MIRRORED: dict[Relation, Relation] = {"below": "above", "above": "below"}
STEP = 1 / 360

differences = st.lists(st.one_of(st.floats(-100, 100), st.sampled_from([0.0, math.inf, -math.inf])), min_size=1, max_size=24)


def noise(*key: str, n: int) -> list[float]:
    return [float(value) for value in generator(*key).standard_normal(n)]


@pytest.mark.parametrize(
    ("centre", "margin", "relation"),
    [
        (3.0, 1.0, "above"),
        (-3.0, 1.0, "below"),
        (3.0, None, "above"),
        (3.0, 9.0, "equivalent though different"),
        (0.0, 9.0, "equivalent"),
        (0.0, 0.1, "undecided"),
        (0.0, None, "undecided"),
    ],
)
def test_the_interval_and_the_margin_decide(centre: float, margin: float | None, relation: Relation) -> None:
    centred = [centre + value for value in (*noise("decide", n=10), *(-value for value in noise("decide", n=10)))]
    for estimator in ESTIMATORS:
        assert judge(centred, margin=margin, alpha=ALPHA, estimator=estimator).relation == relation


def test_an_interval_that_reaches_the_margin_is_not_within_it() -> None:
    assert judge([1.0] * 12, margin=1.0, alpha=ALPHA).relation == "above"
    assert judge([0.3 - 0.1] * 12, margin=0.2, alpha=ALPHA, rounding_scale=0.3).relation == "above"  # 0.19999999999999998
    assert judge([0.99] * 12, margin=1.0, alpha=ALPHA).relation == "equivalent though different"


@pytest.mark.parametrize("n", [1, 5, 10, 40])
def test_identical_data_never_win(n: int) -> None:
    for estimator, margin, step in itertools.product(ESTIMATORS, (None, 0.01), (0.0, STEP)):
        relation = judge([0.0] * n, margin=margin, alpha=ALPHA, grid_step=step, estimator=estimator).relation
        assert relation in ("undecided", "equivalent")


def test_differences_that_are_rounding_alone_never_win() -> None:
    values = [(0.1 + 0.2) * k - 0.3 * k for k in range(1, 21)]
    assert max(values) > 0
    assert judge(values, margin=None, alpha=ALPHA).relation == "above"  # the planted defect: nothing tells their scale
    assert judge(values, margin=None, alpha=ALPHA, rounding_scale=6.0).relation == "undecided"


def test_sizes_that_differ_in_their_last_bits_are_one_size_and_a_difference_above_rounding_is_kept() -> None:
    values = np.array([0.3 - 0.2, 0.0 - 0.1, 0.3 - 0.1 - 0.2, 0.01, math.inf, -math.inf])
    assert values[0] != -values[1]  # or there would be nothing to show
    clean, step = without_rounding(values, 0.0, 1.0)
    assert clean[0] == -clean[1] > 0
    assert (clean[2], clean[3], clean[4], clean[5], step) == (0.0, 0.01, math.inf, -math.inf, 0.0)
    assert without_rounding(np.array([1e-9, -2e-9]), 0.0, 1.0)[0].tolist() == [1e-9, -2e-9]


def test_opposite_infinite_values_cancel() -> None:
    assert (middle([math.inf, -math.inf]), middle([math.inf, 1.0])) == (0.0, math.inf)


def test_too_few_seeds_claim_nothing() -> None:
    """Of 9 seeds, all of one sign, chance gives as much in 2 of 512 cases: above 0.05 / 15. Of 10 it is below."""
    assert signed_rank.least_n(ALPHA) == 10
    assert signed_rank.least_n(ALPHA / 3) == 11  # a family of 45
    few, enough = (judge([1.0 + k for k in range(n)], margin=None, alpha=ALPHA) for n in (9, 10))
    assert (few.relation, few.interval.low, few.interval.high) == ("undecided", -math.inf, math.inf)
    assert (enough.relation, enough.p) == ("above", 2 / 1024)


def test_the_estimate_and_the_interval_are_order_statistics_of_the_walsh_averages() -> None:
    values = noise("walsh", n=12)
    walsh = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2))
    k = signed_rank.depth(12, ALPHA)
    interval = judge(values, margin=None, alpha=ALPHA).interval
    assert interval.estimate == pytest.approx(float(np.median(walsh)))
    assert (interval.low, interval.high) == pytest.approx((walsh[k - 1], walsh[-k]))


@pytest.mark.parametrize("n", [5, 10, 17, 30])
def test_the_p_value_without_ties_is_that_of_scipy(n: int) -> None:
    for repetition in range(20):
        values = noise("p", str(n), str(repetition), n=n)
        expected = stats.wilcoxon(values, method="exact").pvalue
        assert judge(values, margin=None, alpha=ALPHA).p == pytest.approx(expected)
        assert signed_rank.exact_p(np.array(values)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(8))
def test_the_p_value_with_ties_and_zeros_is_that_of_all_sign_flips(seed: int) -> None:
    values = generator("flips", str(seed)).integers(-3, 5, 9).astype(float)
    exact = stats.PermutationMethod(n_resamples=10_000)  # all 2**9
    expected = stats.wilcoxon(values, zero_method="pratt", method=exact).pvalue
    assert signed_rank.exact_p(values) == pytest.approx(expected) == signed_rank.exact_p(-values)


@pytest.mark.parametrize(("n", "five", "one"), [(10, 8, 3), (14, 21, 12), (20, 52, 37), (25, 89, 68)])
def test_the_critical_values_of_the_signed_rank_test_are_the_published_ones(n: int, five: int, one: int) -> None:
    assert (signed_rank.depth(n, 0.05) - 1, signed_rank.depth(n, 0.01) - 1) == (five, one)


@pytest.mark.parametrize("step", [0.0, STEP])
@pytest.mark.parametrize("seed", range(4))
def test_given_the_sizes_of_tied_differences_chance_wins_in_at_most_alpha_of_all_signs(seed: int, step: float) -> None:
    """Exact, whatever the ties: 2**11 sign patterns of every sample. A looser alpha lets more of them win."""
    sizes = generator("sizes", str(seed)).integers(0, 4 + 2 * seed, 11)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=11)))
    bounds = signed_rank.bounds(sizes * signs, 0.05, 1.0 if step else 0.0)
    wins = (bounds.low > 0) | (bounds.high < 0)
    assert wins.mean() <= 0.05
    assert np.array_equal(wins, bounds.p <= 0.05 * (1 + 1e-9))
    looser = signed_rank.bounds(sizes * signs, 0.3, 1.0 if step else 0.0)
    assert ((looser.low > 0) | (looser.high < 0)).mean() > 0.05


def test_mid_ranks_alone_would_let_chance_win_more_often_than_alpha() -> None:
    """The worst case of 14: two zeros, eight equal and four greater equal ones. The exact test of these ranks holds it."""
    sizes = np.array([0.0] * 2 + [1.0] * 8 + [2.0] * 4)
    ranks = stats.rankdata(sizes)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=12)))
    rows = np.hstack([np.zeros((len(signs), 2)), signs]) * sizes

    def statistic(differences: np.ndarray[Any, np.dtype[np.float64]]) -> float:
        """Return the lesser sum of the ranks of one sign; zeros are ranked and split evenly."""
        zeros = float(ranks[differences == 0].sum()) / 2
        return min(float(ranks[differences > 0].sum()), float(ranks[differences < 0].sum())) + zeros

    assert (np.array([*map(statistic, rows)]) <= signed_rank.depth(14, ALPHA) - 1).mean() > ALPHA
    bounds = signed_rank.bounds(rows, ALPHA, 1.0)
    assert 0 < ((bounds.low > 0) | (bounds.high < 0)).mean() <= ALPHA


def test_a_grid_is_recognized_in_differences_that_are_rounded_and_values_off_it_are_judged_as_such() -> None:
    counts = [3, 0, 4, 2, 7, 1, 5, 2, 6, 3, -1, 4, 2, 3, 5, 0, 1, 4, 2, 3]
    exact = judge([count * STEP for count in counts], margin=None, alpha=ALPHA, grid_step=STEP)
    rounded = judge([(300 + count) / 360 - 300 / 360 for count in counts], margin=None, alpha=ALPHA, grid_step=STEP)
    assert rounded == exact
    assert exact.relation == "above"
    clean, step = without_rounding(np.array([301 / 360 - 300 / 360, 0.0, -math.inf]), STEP, 1.0)
    assert (clean.tolist(), step) == ([1.0, 0.0, -math.inf], STEP)
    values = [0.37 * value for value in noise("off", n=20)]
    off, none = (judge(values, margin=1.0, alpha=ALPHA, grid_step=step) for step in (0.1, 0.0))
    assert off.interval == none.interval


def test_an_interval_is_at_least_half_a_grid_step_to_each_side() -> None:
    for estimator in ESTIMATORS:
        judgement = judge([2 * STEP] * 12, margin=0.1, alpha=ALPHA, grid_step=STEP, estimator=estimator)
        assert judgement.interval.low <= 1.5 * STEP * (1 + 1e-9)
        assert judgement.interval.high >= 2.5 * STEP * (1 - 1e-9)
        assert judgement.relation == "equivalent though different"


def test_failures_of_one_side_count_against_it() -> None:
    """Without the failures nothing would be known."""
    even = [value / 10 for value in noise("even", n=14)]
    assert judge(even, margin=None, alpha=ALPHA).relation == "undecided"
    failed = judge([*even, *[math.inf] * 12], margin=None, alpha=ALPHA)
    assert (failed.relation, failed.interval.high) == ("above", math.inf)
    assert judge([math.inf] * 10, margin=1.0, alpha=ALPHA).relation == "above"


def test_failures_of_both_sides_are_undecided_and_a_few_of_each_widen_the_interval() -> None:
    for estimator in ESTIMATORS:
        judgement = judge([math.inf] * 10 + [-math.inf] * 10, margin=1.0, alpha=ALPHA, estimator=estimator)
        assert (judgement.relation, judgement.interval.low, judgement.interval.high) == ("undecided", -math.inf, math.inf)
    values = noise("few", n=28)
    few, without = (judge(sample, margin=None, alpha=ALPHA).interval for sample in ([*values, math.inf, -math.inf], values))
    assert -math.inf < few.low < without.low
    assert without.high < few.high < math.inf


@settings(max_examples=60)
@given(values=differences, estimator=st.sampled_from(ESTIMATORS), step=st.sampled_from([0.0, 0.5]), data=st.data())
def test_negated_differences_give_the_mirrored_verdict_and_their_order_does_not_matter(
    values: list[float], estimator: Estimator, step: float, data: st.DataObject
) -> None:
    values = [round(value) / 2 if step and math.isfinite(value) else value for value in values]
    plain, negated, turned = (
        judge(sample, margin=1.0, alpha=ALPHA, grid_step=step, estimator=estimator)
        for sample in (values, [-value for value in values], data.draw(st.permutations(values)))
    )
    assert turned == plain
    assert negated.relation == MIRRORED.get(plain.relation, plain.relation)
    assert (negated.interval.low, negated.interval.high) == pytest.approx((-plain.interval.high, -plain.interval.low), abs=1e-9)
    assert negated.p == pytest.approx(plain.p)


@settings(max_examples=40)
@given(values=st.lists(st.floats(-100, 100), min_size=10, max_size=24), estimator=st.sampled_from(ESTIMATORS))
def test_a_worse_seed_never_turns_a_loss_into_a_win(values: list[float], estimator: Estimator) -> None:
    """Greater differences move the interval up."""
    before, after = (judge(sample, margin=None, alpha=ALPHA, estimator=estimator) for sample in (values, [math.inf, *values[1:]]))
    assert before.relation == "below" or after.relation != "below"


@settings(max_examples=40)
@given(
    values=st.lists(st.integers(-9, 12), min_size=2, max_size=16), step=st.sampled_from([0.0, 0.5]), failures=st.integers(0, 2)
)
def test_leaving_out_each_seed_at_once_is_leaving_it_out_one_by_one(values: list[int], step: float, failures: int) -> None:
    differences = [value / 2 for value in values] + [math.inf] * failures
    for index, judgement in enumerate(judge_without_each(differences, margin=2.0, alpha=ALPHA, grid_step=step)):
        rest = [*differences[:index], *differences[index + 1 :]]
        assert judgement == judge(rest, margin=2.0, alpha=ALPHA, grid_step=step)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"alpha": 0.0}, "0 < alpha < 1"), ({"margin": 0.0}, "margin > 0"), ({"differences": []}, "`differences` must hold")],
)
def test_what_cannot_be_judged_is_refused(changed: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"differences": [1.0, 2.0], "margin": 1.0, "alpha": 0.05} | changed
    with pytest.raises(ValueError, match=message):
        judge(**arguments)  # type: ignore[arg-type]
