"""Verdicts on paired differences: what decides, failures, rounding, grids, exactness, published ranks and properties."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneoff.judge.stats import signed_rank
from tuneoff.judge.stats.paired import Estimator, Relation, judge, judge_without_each
from tuneoff.judge.stats.sign_flip import generator

pytestmark = pytest.mark.slow

stats = pytest.importorskip("scipy.stats")

ALPHA = 0.05 / 15
ESTIMATORS: tuple[Estimator, ...] = ("hodges-lehmann", "median")
MIRRORED: dict[Relation, Relation] = {"below": "above", "above": "below"}
STEP = 1 / 360

# J. Demšar, J. Mach. Learn. Res. 7 (2006) 1, Table 6: AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 data sets.
DEMSAR = [
    (0.763, 0.768, 0.771, 0.798),
    (0.599, 0.591, 0.590, 0.569),
    (0.954, 0.971, 0.968, 0.967),
    (0.628, 0.661, 0.654, 0.657),
    (0.882, 0.888, 0.886, 0.898),
    (0.936, 0.931, 0.916, 0.931),
    (0.661, 0.668, 0.609, 0.685),
    (0.583, 0.583, 0.563, 0.625),
    (0.775, 0.838, 0.866, 0.875),
    (1.000, 1.000, 1.000, 1.000),
    (0.940, 0.962, 0.965, 0.962),
    (0.619, 0.666, 0.614, 0.669),
    (0.972, 0.981, 0.975, 0.9749),  # printed as 0.975, and ranked second and third
    (0.957, 0.978, 0.946, 0.970),
]

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


@pytest.mark.parametrize("n", [1, 2, 5, 10, 20, 40])
def test_identical_data_never_win(n: int) -> None:
    for estimator, margin, step in itertools.product(ESTIMATORS, (None, 0.01), (0.0, STEP)):
        relation = judge([0.0] * n, margin=margin, alpha=ALPHA, grid_step=step, estimator=estimator).relation
        assert relation in ("undecided", "equivalent")


def test_differences_that_are_rounding_alone_never_win() -> None:
    values = [(0.1 + 0.2) * k - 0.3 * k for k in range(1, 21)]
    assert max(values) > 0
    assert judge(values, margin=None, alpha=ALPHA).relation == "above"  # the planted defect: nothing tells their scale
    assert judge(values, margin=None, alpha=ALPHA, rounding_scale=6.0).relation == "undecided"


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
    found = judge(values, margin=None, alpha=ALPHA).interval
    assert found.estimate == pytest.approx(float(np.median(walsh)))
    assert (found.low, found.high) == pytest.approx((walsh[k - 1], walsh[-k]))


@pytest.mark.parametrize("n", [5, 10, 17, 30])
def test_the_p_value_without_ties_is_that_of_scipy(n: int) -> None:
    for repetition in range(20):
        values = noise("p", str(n), str(repetition), n=n)
        expected = stats.wilcoxon(values, method="exact").pvalue
        assert judge(values, margin=None, alpha=ALPHA).p == pytest.approx(expected)
        assert signed_rank.exact_p(np.array(values)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_the_p_value_with_ties_and_zeros_is_that_of_all_sign_flips(seed: int) -> None:
    values = generator("flips", str(seed)).integers(-3, 5, 9).astype(float)
    exact = stats.PermutationMethod(n_resamples=10_000)  # all 2**9
    expected = stats.wilcoxon(values, zero_method="pratt", method=exact).pvalue
    assert signed_rank.exact_p(values) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "five", "one"), [(10, 8, 3), (14, 21, 12), (20, 52, 37), (25, 89, 68)])
def test_the_critical_values_of_the_signed_rank_test_are_the_published_ones(n: int, five: int, one: int) -> None:
    assert (signed_rank.depth(n, 0.05) - 1, signed_rank.depth(n, 0.01) - 1) == (five, one)


def statistic(differences: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """Return the sums of the ranks of the positive and of the negative differences; zeros are ranked and split evenly."""
    ranks = stats.rankdata(np.abs(differences))
    zeros = float(ranks[differences == 0].sum()) / 2
    return float(ranks[differences > 0].sum()) + zeros, float(ranks[differences < 0].sum()) + zeros


def test_the_signed_ranks_of_demsars_example() -> None:
    """C4.5+m against C4.5: R+ = 93, R− = 12, so T = 12, and "we reject" at 0.05."""
    one, other = ([row[column] for row in DEMSAR] for column in (1, 0))
    differences = np.array([round(a - b, 3) for a, b in zip(one, other, strict=True)])
    assert statistic(differences) == (93, 12)
    assert 0.005 < signed_rank.exact_p(differences) < 0.02  # 0.011 by the approximation with a normal distribution
    assert signed_rank.exact_p(differences) == signed_rank.exact_p(-differences)


@pytest.mark.parametrize("step", [0.0, STEP])
@pytest.mark.parametrize("seed", range(6))
def test_given_the_sizes_of_tied_differences_chance_wins_in_at_most_alpha_of_all_signs(seed: int, step: float) -> None:
    """Exact, whatever the ties: 2**11 sign patterns of every sample. A looser alpha lets more of them win."""
    sizes = generator("sizes", str(seed)).integers(0, 4 + 2 * seed, 11)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=11)))
    found = signed_rank.bounds(sizes * signs, 0.05, 1.0 if step else 0.0)
    wins = (found.low > 0) | (found.high < 0)
    assert wins.mean() <= 0.05
    assert np.array_equal(wins, found.p <= 0.05 * (1 + 1e-9))
    looser = signed_rank.bounds(sizes * signs, 0.3, 1.0 if step else 0.0)
    assert ((looser.low > 0) | (looser.high < 0)).mean() > 0.05


def test_mid_ranks_alone_would_let_chance_win_more_often_than_alpha() -> None:
    """The worst case of 14: two zeros, eight equal and four greater equal ones. The exact test of these ranks holds it."""
    sizes = np.array([0.0] * 2 + [1.0] * 8 + [2.0] * 4)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=12)))
    rows = np.hstack([np.zeros((len(signs), 2)), signs]) * sizes
    statistics = np.array([min(statistic(row)) for row in rows])
    assert (statistics <= signed_rank.depth(14, ALPHA) - 1).mean() > ALPHA
    found = signed_rank.bounds(rows, ALPHA, 1.0)
    assert 0 < ((found.low > 0) | (found.high < 0)).mean() <= ALPHA


def test_a_grid_is_recognized_in_differences_that_are_rounded() -> None:
    counts = [3, 0, 4, 2, 7, 1, 5, 2, 6, 3, -1, 4, 2, 3, 5, 0, 1, 4, 2, 3]
    exact = judge([count * STEP for count in counts], margin=None, alpha=ALPHA, grid_step=STEP)
    rounded = judge([(300 + count) / 360 - 300 / 360 for count in counts], margin=None, alpha=ALPHA, grid_step=STEP)
    assert rounded == exact
    assert exact.relation == "above"


def test_values_off_the_grid_are_judged_as_such() -> None:
    values = [0.37 * value for value in noise("off", n=20)]
    found, expected = (judge(values, margin=1.0, alpha=ALPHA, grid_step=step) for step in (0.1, 0.0))
    assert found.interval == expected.interval


def test_an_interval_is_at_least_half_a_grid_step_to_each_side() -> None:
    for estimator in ESTIMATORS:
        found = judge([2 * STEP] * 12, margin=0.1, alpha=ALPHA, grid_step=STEP, estimator=estimator)
        assert found.interval.low <= 1.5 * STEP * (1 + 1e-9)
        assert found.interval.high >= 2.5 * STEP * (1 - 1e-9)
        assert found.relation == "equivalent though different"


def test_failures_of_one_side_count_against_it() -> None:
    """17 seeds are even, one fails in three: worse. Without the failures nothing would be known."""
    even = [value / 10 for value in noise("even", n=14)]
    assert judge(even, margin=None, alpha=ALPHA).relation == "undecided"
    failed = judge([*even, *[math.inf] * 12], margin=None, alpha=ALPHA)
    assert (failed.relation, failed.interval.high) == ("above", math.inf)
    assert judge([math.inf] * 10, margin=1.0, alpha=ALPHA).relation == "above"


def test_failures_of_both_sides_in_turn_are_undecided() -> None:
    for estimator in ESTIMATORS:
        found = judge([math.inf] * 10 + [-math.inf] * 10, margin=1.0, alpha=ALPHA, estimator=estimator)
        assert (found.relation, found.interval.low, found.interval.high) == ("undecided", -math.inf, math.inf)


def test_a_few_failures_of_each_side_widen_the_interval_and_leave_it_finite() -> None:
    values = noise("few", n=28)
    found = judge([*values, math.inf, -math.inf], margin=None, alpha=ALPHA).interval
    without = judge(values, margin=None, alpha=ALPHA).interval
    assert -math.inf < found.low < without.low
    assert without.high < found.high < math.inf


@settings(max_examples=60)
@given(values=differences, estimator=st.sampled_from(ESTIMATORS), step=st.sampled_from([0.0, 0.5]))
def test_negated_differences_give_the_mirrored_verdict(values: list[float], estimator: Estimator, step: float) -> None:
    values = [round(value) / 2 if step and math.isfinite(value) else value for value in values]
    one, other = (
        judge([sign * value for value in values], margin=1.0, alpha=ALPHA, grid_step=step, estimator=estimator)
        for sign in (1, -1)
    )
    assert other.relation == MIRRORED.get(one.relation, one.relation)
    assert (other.interval.low, other.interval.high) == pytest.approx((-one.interval.high, -one.interval.low), abs=1e-9)
    assert other.p == pytest.approx(one.p)


@settings(max_examples=60)
@given(values=differences, estimator=st.sampled_from(ESTIMATORS), data=st.data())
def test_the_order_of_the_seeds_does_not_matter(values: list[float], estimator: Estimator, data: st.DataObject) -> None:
    turned = data.draw(st.permutations(values))
    assert judge(turned, margin=1.0, alpha=ALPHA, estimator=estimator) == judge(
        values, margin=1.0, alpha=ALPHA, estimator=estimator
    )


@settings(max_examples=60)
@given(values=st.lists(st.floats(-100, 100), min_size=10, max_size=24), estimator=st.sampled_from(ESTIMATORS))
def test_a_worse_seed_never_turns_a_loss_into_a_win(values: list[float], estimator: Estimator) -> None:
    """Greater differences move the interval up."""
    before = judge(values, margin=None, alpha=ALPHA, estimator=estimator)
    after = judge([math.inf, *values[1:]], margin=None, alpha=ALPHA, estimator=estimator)
    if before.relation != "below":
        assert after.relation != "below"


@settings(max_examples=40)
@given(
    values=st.lists(st.integers(-9, 12), min_size=2, max_size=16), step=st.sampled_from([0.0, 0.5]), failures=st.integers(0, 2)
)
def test_leaving_out_each_seed_at_once_is_leaving_it_out_one_by_one(values: list[int], step: float, failures: int) -> None:
    differences = [value / 2 for value in values] + [math.inf] * failures
    found = judge_without_each(differences, margin=2.0, alpha=ALPHA, grid_step=step)
    for place, judgement in enumerate(found):
        rest = [*differences[:place], *differences[place + 1 :]]
        assert judgement == judge(rest, margin=2.0, alpha=ALPHA, grid_step=step)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"alpha": 0.0}, "0 < alpha < 1"), ({"margin": 0.0}, "margin > 0"), ({"differences": []}, "`differences` must hold")],
)
def test_what_cannot_be_judged_is_refused(changed: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"differences": [1.0, 2.0], "margin": 1.0, "alpha": 0.05} | changed
    with pytest.raises(ValueError, match=message):
        judge(**arguments)  # type: ignore[arg-type]
