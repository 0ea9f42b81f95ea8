"""The ratios of the table: of every pair, with a sign and words, and nothing claimed that the choice does not hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tell.plots.made_view import SEVERAL, view
from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.stats.location import Interval
from tuneoff.tell.page import frameworks
from tuneoff.tell.page.frameworks import ITSELF, LEGEND, added_cell, failed, has_intervals, ratio_cell, ratio_cells, signs_used

pytest.importorskip("scipy")


def test_the_ratio_is_that_of_the_choice_with_its_interval_and_its_sign() -> None:
    _, _, setting = view(replace(SEVERAL, failed=()))
    scope = setting.scopes[0].text
    floor, optuna, emulated = setting.rows
    found = ratio_cell(floor, scope, "optuna")
    ratio = floor.first.ratios["optuna"]
    assert ratio.outcome is Outcome.BETTER
    assert (found.sign, found.css, found.words) == LEGEND[Outcome.BETTER]
    assert found.text == f"{ratio.estimate:.2f}x"
    assert " to " in found.below
    assert found.order == ratio.estimate
    assert ratio_cell(optuna, scope, "optuna") == ITSELF
    assert ratio_cell(emulated, scope, "optuna").text == "–", "what is emulated is in no comparison"
    assert has_intervals(setting)
    assert {symbol for symbol, _, _ in signs_used(setting)} == {"▲", "▼"}


def test_where_runs_failed_there_is_no_ratio() -> None:
    _, _, setting = view(SEVERAL)
    assert ratio_cell(setting.rows[0], setting.scopes[0].text, "optuna").text == "–"


def test_below_ten_seeds_a_ratio_claims_nothing() -> None:
    _, _, setting = view(replace(SEVERAL, seeds=(0, 1, 2), failed=()))
    found = ratio_cell(setting.rows[0], setting.scopes[0].text, "optuna")
    assert (found.sign, found.css, found.words) == LEGEND[Outcome.NOT_JUDGED]
    assert not has_intervals(setting)


def test_a_reader_may_choose_any_row_where_there_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, setting = view(SEVERAL)
    scope = setting.scopes[0].text
    assert [len(ratio_cells(row, scope, setting)) for row in setting.rows] == [3, 3, 3]
    monkeypatch.setattr(frameworks, "MOST_REFERENCES", 2)
    assert ratio_cells(setting.rows[0], scope, setting) == []


def test_failures_are_told_of_those_that_were_tried() -> None:
    _, _, setting = view(SEVERAL)
    assert [failed(row.columns.values()) for row in setting.rows] == ["0 of 10", "1 of 10", "0 of 10"]


@pytest.mark.parametrize(
    ("low", "high", "below"),
    [(0.5, 3.0, "0.50 to 3 s"), (0.5, 200.0, "0.50 s to 3.3 min"), (1.0, 1.0, "1 s"), (-1.0, 2.0, "0 to 2 s")],
)
def test_what_is_added_has_its_unit_once(low: float, high: float, below: str) -> None:
    interval = Interval(estimate=1.0, low=low, high=high, confidence=0.95, n=10, method="made")
    assert added_cell(interval)[:2] == ("1 s", below)
    assert added_cell(None).text == "–"
