"""Signed ranks: published critical values, and Demšar's worked example."""

from __future__ import annotations

import numpy as np
import pytest

from tuneoff.judge.stats.signed_rank import depth, exact_p, statistic

pytest.importorskip("scipy")

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


@pytest.mark.parametrize(("n", "five", "one"), [(10, 8, 3), (14, 21, 12), (20, 52, 37), (25, 89, 68)])
def test_the_critical_values_of_the_signed_rank_test_are_the_published_ones(n: int, five: int, one: int) -> None:
    assert (depth(n, 0.05) - 1, depth(n, 0.01) - 1) == (five, one)


def test_the_signed_ranks_of_demsars_example() -> None:
    """C4.5+m against C4.5: R+ = 93, R− = 12, so T = 12, and "we reject" at 0.05."""
    one, other = ([row[column] for row in DEMSAR] for column in (1, 0))
    differences = np.array([round(a - b, 3) for a, b in zip(one, other, strict=True)])
    assert statistic(differences) == (93, 12)
    assert 0.005 < exact_p(differences) < 0.02  # 0.011 by the approximation with a normal distribution
    assert exact_p(differences) == exact_p(-differences)
