"""Rank tests: published critical differences, Demšar's worked examples, agreement with scipy and scikit-posthocs."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from tuneoff.stats.keyed import generator
from tuneoff.stats.ranks import critical_difference, friedman, holm, wilcoxon
from tuneoff.stats.signed_rank import depth, statistic

stats = pytest.importorskip("scipy.stats")

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
LOSSES = [[-area for area in row] for row in DEMSAR]  # lower is better


@pytest.mark.parametrize(
    ("k", "tasks", "expected"),
    [
        *[(4, n, cd) for n, cd in ((1, 4.69), (2, 3.32), (3, 2.71), (5, 2.10), (10, 1.48), (20, 1.05), (30, 0.86), (50, 0.66))],
        (3, 10, 1.05),
        (5, 10, 1.93),
        (6, 10, 2.38),
        (4, 14, 1.25),  # Demšar's example
    ],
)
def test_critical_differences_are_the_published_ones(k: int, tasks: int, expected: float) -> None:
    assert critical_difference(k, tasks) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(("k", "expected"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_quantiles_are_those_of_demsars_table(k: int, expected: float) -> None:
    assert critical_difference(k, 1) / math.sqrt(k * (k + 1) / 6) == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize(("n", "five", "one"), [(10, 8, 3), (14, 21, 12), (20, 52, 37), (25, 89, 68)])
def test_the_critical_values_of_the_signed_rank_test_are_the_published_ones(n: int, five: int, one: int) -> None:
    assert (depth(n, 0.05) - 1, depth(n, 0.01) - 1) == (five, one)


def test_friedman_of_demsars_example() -> None:
    found = friedman(LOSSES)
    assert found.mean_ranks == pytest.approx((3.143, 2.000, 2.893, 1.964), abs=0.0005)
    assert found.chi2 == pytest.approx(9.28, abs=0.005)
    assert found.F == pytest.approx(3.69, abs=0.005)  # noqa: SIM300
    assert found.n_tasks == 14
    assert found.p < 0.05
    assert friedman(DEMSAR).mean_ranks != found.mean_ranks  # the direction matters


def test_wilcoxon_of_demsars_example() -> None:
    """C4.5+m against C4.5: R+ = 93, R− = 12, so T = 12, and "we reject" at 0.05."""
    one, other = ([row[column] for row in DEMSAR] for column in (1, 0))
    differences = np.array([round(a - b, 3) for a, b in zip(one, other, strict=True)])
    assert statistic(differences) == (93, 12)
    assert 0.005 < wilcoxon(one, other) < 0.02  # 0.011 by the approximation with a normal distribution
    assert wilcoxon(one, other) == wilcoxon(other, one)


@pytest.mark.parametrize("seed", range(5))
def test_friedman_and_nemenyi_agree_with_scipy_and_posthocs(seed: int) -> None:
    posthocs = pytest.importorskip("scikit_posthocs")
    table = generator("friedman", str(seed)).normal([0.0, 0.3, 0.6, 0.9], 1.0, (12, 4))
    found = friedman(table.tolist())
    expected = stats.friedmanchisquare(*table.T)
    assert found.chi2 == pytest.approx(expected.statistic)
    p_values = posthocs.posthoc_nemenyi_friedman(table).to_numpy()
    limit = critical_difference(4, 12)
    for one, other in combinations(range(4), 2):
        differ = abs(found.mean_ranks[one] - found.mean_ranks[other]) > limit
        assert differ == (p_values[one, other] < 0.05)


@pytest.mark.parametrize("seed", range(5))
def test_wilcoxon_with_holm_agrees_with_posthocs(seed: int) -> None:
    posthocs = pytest.importorskip("scikit_posthocs")
    table = generator("wilcoxon", str(seed)).normal([0.0, 0.3, 0.9, 1.5], 1.0, (12, 4))
    pairs = list(combinations(range(4), 2))
    adjusted = holm([wilcoxon(table[:, one].tolist(), table[:, other].tolist()) for one, other in pairs])
    expected = posthocs.posthoc_wilcoxon(table.T.tolist(), p_adjust="holm").to_numpy()
    assert adjusted == pytest.approx([expected[one, other] for one, other in pairs])


def test_equal_columns_do_not_differ_and_constant_orders_do() -> None:
    assert friedman([[1.0, 1.0, 1.0]] * 5).p == 1.0
    always = friedman([[1.0, 2.0, 3.0]] * 5)
    assert (always.F, always.p) == (math.inf, 0.0)


def test_failures_are_ranked_last_and_two_are_equal() -> None:
    assert friedman([[math.inf, 1.0, math.inf], [3.0, 2.0, 1.0]]).mean_ranks == (2.75, 1.5, 1.75)
    assert wilcoxon([math.inf] * 6, [math.inf] * 6) == 1.0
    assert wilcoxon([math.inf] * 6, [1.0] * 6) == pytest.approx(2 / 64)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 rows"):
        friedman([[1.0, 2.0]])
    with pytest.raises(ValueError, match="len"):
        wilcoxon([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="k >= 2"):
        critical_difference(1, 10)
