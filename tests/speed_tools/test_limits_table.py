"""The table of `python -m benchmarks.limits`: medians of each limit, and ratios to no limit over pairs."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.limits import LIMITS, ratio, table

BASES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def runs(factors: dict[str, float]) -> list[dict[str, Any]]:
    """Return runs of one adapter whose overhead is the pair's base times the limit's factor."""
    return [
        {"pair": pair, "adapter": "a", "limit": limit, "overhead_per_trial_ms": base * factors[limit]}
        for pair, base in enumerate(BASES)
        for limit in LIMITS
    ]


def test_the_ratio_is_of_pairs_and_not_of_medians() -> None:
    found = ratio([3 * base for base in BASES], BASES)
    assert (found.estimate, found.low, found.high) == pytest.approx((3.0, 3.0, 3.0))
    reversed_pairs = ratio([3 * base for base in reversed(BASES)], BASES)  # negative control: the same two medians
    assert reversed_pairs.high / reversed_pairs.low > 2


def test_a_row_has_each_limit_s_median_and_both_ratios() -> None:
    head, row = table(runs({"none": 1.0, "quota": 1.5, "affinity": 4.0}))
    head = head.lower()
    assert [head.index(limit) < head.index(f"{limit} / none") for limit in LIMITS[1:]] == [True, True]
    cells = [cell.strip() for cell in row.split("  ") if cell.strip()]
    assert cells[:2] == ["a", "7"]
    assert [cell.split()[0] for cell in cells[2:]] == ["4", "6", "16", "1.5", "4"]


def test_runs_count_by_their_pair_whatever_their_order() -> None:
    made = runs({"none": 1.0, "quota": 1.5, "affinity": 4.0})
    assert table(made[::-1]) == table(made)
