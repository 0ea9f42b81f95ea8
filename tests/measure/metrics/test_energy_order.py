from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.measure.energy_order import WeightRange, energy_order, weight_range, widest

USES = st.floats(0, 1e6)
WEIGHTS = weight_range(())


def test_less_of_both_uses_is_less_energy_on_every_server() -> None:
    order = energy_order(10, 20, 12, 30, WEIGHTS)
    assert order.less == "a"
    assert order.low == pytest.approx((10 + WEIGHTS.low * 20) / (12 + WEIGHTS.low * 30))
    assert energy_order(12, 30, 10, 20, WEIGHTS).less == "b"


def test_an_order_that_depends_on_the_server_is_not_claimed() -> None:
    order = energy_order(10, 40, 15, 20, WEIGHTS)  # less CPU, more reserved time: even at 0.25 W per core over J per CPU second
    assert order.less is None
    assert order.even_at == pytest.approx(0.25)
    assert order.low is not None
    assert order.high is not None
    assert order.low < 1 < order.high


def test_equal_uses_have_no_order() -> None:
    assert energy_order(1, 2, 1, 2, WEIGHTS).less is None
    assert energy_order(0, 0, 0, 0, WEIGHTS) == energy_order(0, 0, 0, 0, WEIGHTS)
    assert energy_order(0, 0, 0, 0, WEIGHTS).low is None


@given(USES, USES, USES, USES, st.floats(WEIGHTS.low, WEIGHTS.high))
def test_a_claimed_order_holds_for_every_ratio_of_the_range(
    cpu_a: float, core_a: float, cpu_b: float, core_b: float, ratio: float
) -> None:
    order = energy_order(cpu_a, core_a, cpu_b, core_b, WEIGHTS)
    a, b = cpu_a + ratio * core_a, cpu_b + ratio * core_b
    if order.less == "a":
        assert a <= b * (1 + 1e-12)
    if order.less == "b":
        assert b <= a * (1 + 1e-12)
    mirrored = energy_order(cpu_b, core_b, cpu_a, core_a, WEIGHTS).less
    assert mirrored == {"a": "b", "b": "a", None: None}[order.less]


@pytest.mark.parametrize("uses", [(-1, 1, 1, 1), (1, 1, 1, float("inf")), (float("nan"), 1, 1, 1)])
def test_a_use_that_cannot_be_is_refused(uses: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="but got"):
        energy_order(*uses, WEIGHTS)


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
