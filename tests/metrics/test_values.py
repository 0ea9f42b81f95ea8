from __future__ import annotations

import pytest

from tuneoff.metrics.values import Kind, known, weakest


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


def test_a_known_value_says_how_much_of_its_window_was_covered() -> None:
    assert known(1.0, "J", coverage=0.9).coverage == 0.9
    with pytest.raises(ValueError, match="coverage"):
        known(1.0, "J", coverage=1.1)
