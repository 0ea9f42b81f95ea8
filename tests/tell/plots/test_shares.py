"""A curve in the drawing's units: every point inside, the levels where they belong, the table with the same figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge.choice.test_curve import ADDED, LENGTHS, setting_of
from tell.plots.made_view import corners
from tuneoff.judge.choice.curve import amount_text
from tuneoff.tell.plots.anytime import HEIGHT, WIDTH
from tuneoff.tell.plots.shares import Drawn, drawn

pytest.importorskip("scipy")


def only(**more: float) -> Drawn:
    (found,) = drawn(setting_of(*LENGTHS, **more))  # type: ignore[arg-type]
    return found


def test_all_is_inside_and_a_smaller_share_is_lower() -> None:
    plot = only()
    assert [line.label for line in plot.lines] == list(plot.curve.lines)
    for line in plot.lines:
        assert all(0 <= dot.x <= WIDTH and 0 <= dot.high <= dot.y <= dot.low <= HEIGHT for dot in line.dots)
        assert [dot.y for dot in line.dots] == sorted(dot.y for dot in line.dots), "longer trials have a smaller share added"
    (five, _), (one, _) = plot.levels
    assert 0 < five < one < HEIGHT
    of = dict(zip(ADDED, (plot.lines[place].dots[0].y for place in range(3)), strict=True))
    assert of["ray-tune"] < of["optuna"] < five < of["serial"], "0.1 s: 400 %, 20 % and 2 % of a trial"


def test_the_dotted_line_ends_where_the_points_do_unless_more_is_added_to_longer_trials() -> None:
    for line in only().lines:
        assert corners(line.predicted)[-1] == pytest.approx((line.dots[-1].x, line.dots[-1].y), abs=0.2)
    for line in only(grows=100.0).lines:
        assert corners(line.predicted)[-1][1] > line.dots[-1].y + 5


def test_the_table_has_the_same_figures() -> None:
    plot = only()
    assert len(plot.columns) == 3
    for line in plot.lines:
        points = plot.curve.lines[line.label]
        assert [cell.text for cell in line.cells] == [amount_text(plot.curve, point.value.estimate) for point in points]
        assert all(cell.text in dot.text and cell.below in dot.text for cell, dot in zip(line.cells, line.dots, strict=True))


def test_a_framework_without_a_column_has_a_cell_that_says_so() -> None:
    setting = setting_of(*LENGTHS)
    (curve,) = setting.curves
    without = replace(curve, lines={**curve.lines, "optuna": curve.lines["optuna"][1:]})
    (plot,) = drawn(replace(setting, curves=(without,)))
    (line,) = [one for one in plot.lines if one.label == "optuna"]
    assert [bool(cell.reason) for cell in line.cells] == [True, False, False]


def test_one_seed_has_no_interval_and_workers_are_ticks() -> None:
    (plot,) = drawn(setting_of(*((0.5, {"workers.count": count}) for count in (1, 2, 4)), seeds=1))
    assert all(dot.low == dot.y == dot.high for line in plot.lines for dot in line.dots)
    assert [text for _, text in plot.x_ticks] == ["1", "2", "4"]
    assert all(line.predicted == "" for line in plot.lines)
