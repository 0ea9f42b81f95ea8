"""How values are compared, and how a difference is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec import UNSET

from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.pieces import EnergyPiece
from tuneoff.record.metric_value import MetricValue, metric_value
from tuneoff.trust.verify.consistency import PARTITION, wrong_sums
from tuneoff.trust.verify.findings import ValueDifference, differences, is_same, show

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda below: some.lists(below) | some.dictionaries(some.text(), below),
    max_leaves=20,
)


@given(JSON)
def test_equal_values_do_not_differ(value: Any) -> None:
    assert list(differences(value, value)) == []


@given(JSON, JSON)
def test_a_difference_is_seen_from_both_sides(one: Any, other: Any) -> None:
    forth, back = list(differences(one, other)), list(differences(other, one))
    assert {(item.path, repr(item.stored)) for item in forth} == {(item.path, repr(item.recomputed)) for item in back}


@pytest.mark.parametrize(
    ("stored", "recomputed", "same"),
    [
        (1, 1, True),
        (10**18, 10**18 + 1, False),
        (1.0, 1.0 + 1e-10, True),
        (1.0, 1.0 + 1e-8, False),
        (1, 1.0, True),
        (0.0, 1e-300, False),
        (True, 1, False),
        (True, 1.0, False),
        (None, 0, False),
        ("a", "a", True),
        ("1", 1, False),
        (UNSET, None, False),
    ],
)
def test_integers_are_exact_and_decimal_numbers_nearly(stored: Any, recomputed: Any, same: bool) -> None:
    assert is_same(stored, recomputed) is same


def test_items_with_a_name_are_found_by_it() -> None:
    stored = {"trials": [{"trial": "a", "value": 1}, {"trial": "b", "value": 2}]}
    recomputed = {"trials": [{"trial": "b", "value": 3}, {"trial": "c", "value": 1}]}
    assert list(differences(stored, recomputed)) == [
        ValueDifference("trials[a]", {"trial": "a", "value": 1}, UNSET),
        ValueDifference("trials[b].value", 2, 3),
        ValueDifference("trials[c]", UNSET, {"trial": "c", "value": 1}),
    ]


def test_named_items_in_another_order_are_named_at_any_depth() -> None:
    one, other = [{"epochs": [{"epoch": number} for number in order]} for order in ((1, 2), (2, 1))]
    assert list(differences(one, other)) == [ValueDifference("the order of epochs", [1, 2], [2, 1])]


def test_items_of_one_name_and_others_go_by_position() -> None:
    stored = {"attempts": [{"attempt": 1, "slot": 0}, {"attempt": 1, "slot": 1}], "coordinators": ["x"]}
    recomputed = {"attempts": [{"attempt": 1, "slot": 0}, {"attempt": 1, "slot": 2}], "coordinators": ["x", "y"]}
    assert [item.path for item in differences(stored, recomputed)] == ["attempts[#2].slot", "coordinators[#2]"]


def test_a_long_value_is_cut() -> None:
    assert show(UNSET) == "nothing"
    assert len(show("x" * 1000)) == 60


# Sums


def _metrics(**values: float) -> dict[str, MetricValue]:
    return {name.replace("__", "."): metric_value(value, "s") for name, value in values.items()}


PARTS = {f"time__{name}": 1.0 for name in PARTITION}
SLOTS = {"slots__busy": 5.0, "slots__overhead": 3.0, "slots__idle": 1.0}
ENERGY = {"energy__idle": 3.0, "energy__job": 10.0, "energy__node": 12.0}
NOTHING = EnergyAccount(reason="no power was sampled in this run")
ACCOUNT = EnergyAccount(
    attempts={("1", 0): (EnergyPiece(0, 10, 5.0), EnergyPiece(10, 20, 2.0))},
    parts={"idle": (EnergyPiece(0, 20, 3.0),), "others": (EnergyPiece(0, 20, 1.0),)},
    node=(EnergyPiece(0, 20, 12.0),),
)


@pytest.mark.parametrize(
    ("values", "account", "wrong"),
    [
        ({"time__jct": 8.0, **PARTS}, NOTHING, []),
        ({"time__jct": 9.0, **PARTS}, NOTHING, [("time.jct", "it is 9, but its parts sum to 8")]),
        ({"slots__slot_time": 10.0, **SLOTS}, NOTHING, [("slots.slot_time", "it is 10, but its parts sum to 9")]),
        (ENERGY, ACCOUNT, []),
        ({**ENERGY, "energy__idle": 3.5}, ACCOUNT, [("energy.idle", "it is 3.5, but its pieces sum to 3")]),
        ({**ENERGY, "energy__job": 10.5}, ACCOUNT, [("energy.job", "it is 10.5, but its pieces sum to 10")]),
        ({**ENERGY, "energy__node": 12.5}, ACCOUNT, [("energy.node", "it is 12.5, but its pieces sum to 12")]),
    ],
)
def test_what_does_not_sum_up_is_named(values: dict[str, float], account: EnergyAccount, wrong: list[tuple[str, str]]) -> None:
    assert list(wrong_sums(_metrics(**values), account)) == wrong
