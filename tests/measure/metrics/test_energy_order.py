from __future__ import annotations

import pytest

from tuneoff.measure.power.cpu_table import WeightRange, weight_range, widest

WEIGHTS = weight_range(())


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="but got"):
        WeightRange(low=0.5, high=0.1, servers="x")


def test_the_range_without_a_row_is_that_of_servers_since_2023() -> None:
    assert (round(WEIGHTS.low, 3), round(WEIGHTS.high, 3)) == (0.190, 0.937)  # worked out from the results by themselves
    assert WEIGHTS.servers == "287 servers published since 2023"


def test_of_several_rows_the_widest_range_is_taken_with_all_their_servers() -> None:
    low, high = WeightRange(low=0.1, high=0.3, servers="a"), WeightRange(low=0.2, high=0.5, servers="b")
    assert widest([low, high, low]) == WeightRange(low=0.1, high=0.5, servers="a and b")
    assert widest([]) == WEIGHTS
