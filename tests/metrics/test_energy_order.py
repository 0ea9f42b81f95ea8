from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.metrics.energy_order import GREATEST_RATIO, LEAST_RATIO, energy_order

USES = st.floats(0, 1e6)


def test_less_of_both_uses_is_less_energy_on_every_server() -> None:
    order = energy_order(10, 20, 12, 30)
    assert order.less == "a"
    assert order.low == pytest.approx((10 + 0.14 * 20) / (12 + 0.14 * 30))
    assert energy_order(12, 30, 10, 20).less == "b"


def test_an_order_that_depends_on_the_server_is_not_claimed() -> None:
    order = energy_order(10, 40, 15, 20)  # less CPU time, more reserved time: even at 0.25 W per core and J per CPU second
    assert order.less is None
    assert order.even_at == pytest.approx(0.25)
    assert order.low is not None
    assert order.high is not None
    assert order.low < 1 < order.high


def test_equal_uses_have_no_order() -> None:
    assert energy_order(1, 2, 1, 2).less is None
    assert energy_order(0, 0, 0, 0) == energy_order(0, 0, 0, 0)
    assert energy_order(0, 0, 0, 0).low is None


@given(USES, USES, USES, USES, st.floats(LEAST_RATIO, GREATEST_RATIO))
def test_a_claimed_order_holds_for_every_ratio_of_the_range(
    cpu_a: float, core_a: float, cpu_b: float, core_b: float, ratio: float
) -> None:
    order = energy_order(cpu_a, core_a, cpu_b, core_b)
    a, b = cpu_a + ratio * core_a, cpu_b + ratio * core_b
    if order.less == "a":
        assert a <= b * (1 + 1e-12)
    if order.less == "b":
        assert b <= a * (1 + 1e-12)
    mirrored = energy_order(cpu_b, core_b, cpu_a, core_a).less
    assert mirrored == {"a": "b", "b": "a", None: None}[order.less]


@pytest.mark.parametrize("uses", [(-1, 1, 1, 1), (1, 1, 1, float("inf")), (float("nan"), 1, 1, 1)])
def test_a_use_that_cannot_be_is_refused(uses: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="but got"):
        energy_order(*uses)


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="but got"):
        energy_order(1, 1, 1, 1, least_ratio=0.5, greatest_ratio=0.1)
