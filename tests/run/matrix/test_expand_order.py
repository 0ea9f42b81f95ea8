"""The order of runs: Latin squares that balance neighbours, in blocks of seeds."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tuneoff.experiment.expand import rotated, williams_rows


@pytest.mark.parametrize("size", range(1, 9))
def test_each_adapter_stands_equally_often_in_each_place(size: int) -> None:
    rows = williams_rows(size)
    for place in range(size):
        assert set(Counter(row[place] for row in rows).values()) == {len(rows) // size}
    assert all(sorted(row) == list(range(size)) for row in rows)


@pytest.mark.parametrize("size", range(2, 9))
def test_each_adapter_follows_each_other_equally_often(size: int) -> None:
    follows = Counter(pair for row in williams_rows(size) for pair in pairwise(row))
    assert len(follows) == size * (size - 1)
    assert len(set(follows.values())) == 1


def test_a_plain_rotation_would_not_balance_neighbours() -> None:
    follows = Counter(pair for shift in range(4) for pair in pairwise(rotated(4, shift)))
    assert len(follows) < 4 * 3
