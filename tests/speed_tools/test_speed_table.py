"""Rows, verdicts and the table."""

from __future__ import annotations

import json

from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.statistics import PairedEstimate, estimate
from benchmarks.speed.table import number, render


def row(value: float, low: float | None, high: float | None, target: SpeedTarget | None) -> SpeedRow:
    return SpeedRow(
        name="n", a="ours", b="theirs", result=PairedEstimate(value=value, low=low, high=high, count=20), target=target
    )


def test_a_figure_on_its_inclusive_bound_meets_it_and_on_a_strict_one_it_does_not() -> None:
    assert SpeedTarget("<=", 1.1).is_met_by(1.1)
    assert not SpeedTarget("<", 1.1).is_met_by(1.1)
    assert SpeedTarget(">=", 0.8).is_met_by(0.8)
    assert not SpeedTarget(">=", 0.8).is_met_by(0.79)


def test_a_met_target_says_so() -> None:
    assert row(1.05, 1.04, 1.06, SpeedTarget("<=", 1.10)).verdict == "met"


def test_a_missed_target_says_by_how_much() -> None:
    assert row(1.21, 1.20, 1.22, SpeedTarget("<=", 1.10)).verdict == "missed by 10.0%"
    assert row(0.60, 0.59, 0.61, SpeedTarget(">=", 0.80)).verdict == "missed by 25.0%"


def test_an_interval_across_the_bound_is_told() -> None:
    assert row(1.08, 1.05, 1.12, SpeedTarget("<=", 1.10)).verdict == "met, but its interval is not"
    assert row(1.12, 1.05, 1.15, SpeedTarget("<=", 1.10)).verdict == "missed by 1.8%, but its interval meets it"


def test_a_row_without_a_target_is_for_information() -> None:
    assert row(1.3, None, None, None).verdict == "for information"


def test_a_skipped_row_gives_its_reason_and_counts_as_neither_met_nor_missed() -> None:
    missing = skipped("n", "ours", "no data", target=SpeedTarget("<=", 1.0))
    assert missing.verdict == "skipped: no data"
    assert missing.is_met is None


def test_the_table_shows_figure_interval_control_target_and_verdict() -> None:
    full = SpeedRow(
        name="cost.optuna",
        a="with tuneoff",
        b="bare",
        result=estimate([1.0 + index / 100 for index in range(20)]),
        control=estimate([1.0] * 20),
        target=SpeedTarget("<=", 1.10),
        figures={"A s": 5.25},
    )
    text = render([full, skipped("training", "trained", "no data")])
    line = next(line for line in text.splitlines() if line.startswith("cost.optuna"))
    assert line.split("  ")[0] == "cost.optuna"
    for part in ("1.095 x", "[1.05, 1.14] n=20", "1 [1, 1] n=20", "<= 1.1", "met, but its interval is not"):
        assert part in line
    assert "A / B" in text.splitlines()[0]
    assert "    A: with tuneoff" in text
    assert "    A s 5.25" in text
    assert "skipped: no data" in text


def test_rows_are_plain_json() -> None:
    stored = json.loads(json.dumps(row(1.05, None, None, SpeedTarget("<=", 1.10)).to_json()))
    assert stored["is_met"] is True
    assert stored["verdict"] == "met"
    assert stored["target"] == {"relation": "<=", "value": 1.1}


def test_numbers_have_four_digits_and_no_exponent() -> None:
    assert [number(value) for value in (0, 1234567.8, 0.123456, 12.3456, 0.0000123)] == [
        "0",
        "1,234,568",
        "0.1235",
        "12.35",
        "0.000012",
    ]
