from __future__ import annotations

import pytest

from tuneoff.record.metric_value import Kind, MetricValue, known, weakest


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("measured",), "measured"),
        (("measured", "derived"), "derived"),
        (("declared", "derived"), "declared"),
        (("measured", "estimated", "declared"), "estimated"),
    ],
)
def test_a_product_has_the_weakest_kind_of_its_factors(kinds: tuple[Kind, ...], expected: Kind) -> None:
    assert weakest(*kinds) == weakest(*reversed(kinds)) == expected


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_value_that_overflowed_is_missing_and_takes_no_other_with_it(value: float) -> None:
    found = known(value, "USD", kind="declared", source="prices", n_samples=3, coverage=0.5)
    assert (found.value, found.unit, found.kind, found.source) == (None, "USD", "declared", "prices")
    assert found.reason_if_null == f"it came out as {value}: what it is computed from is too large"
    with pytest.raises(ValueError, match="must be finite"):  # a record cannot hold it
        MetricValue(value=value, unit="USD")


def test_a_known_value_says_how_much_of_its_window_was_covered() -> None:
    assert known(1.0, "J", coverage=0.9).coverage == 0.9
    with pytest.raises(ValueError, match="coverage"):
        known(1.0, "J", coverage=1.1)
