"""Each drawing answers a question, says in words what it shows, and its table is what is drawn."""

from __future__ import annotations

import math
import re
import statistics
import xml.etree.ElementTree as ET

import pytest

from builders.made_curves import Made
from tell.plots.drawn import OVER_TASKS, SEVERAL, draw, view_of
from tuneoff.judge.answers.anytime import value_at
from tuneoff.tell.plots import anytime
from tuneoff.tell.plots.canvas import Sheet, rules
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.drawings import NAMES, ORDER
from tuneoff.tell.plots.view import most_note

SINGLE = Made(seeds=(0, 1))


def number(cell: str | float | None) -> float:
    assert isinstance(cell, (int, float))
    return cell


def column(drawing: Drawing, name: str) -> list[str | float | int | bool | None]:
    return [row[drawing.columns.index(name)] for row in drawing.rows]


def test_drawings_come_in_the_order_of_the_report(several: dict[str, Drawing], over_tasks: dict[str, Drawing]) -> None:
    assert set(ORDER) == NAMES
    assert list(several) == [name for name in ORDER if name in several]
    assert {"anytime", "phases", "gantt", "overhead", "paired", "ecdf", "quality_price", "learning"} == set(several)
    assert set(over_tasks) == {"regret"}


def test_each_asks_a_question_and_answers_it_in_words_with_figures(
    several: dict[str, Drawing], over_tasks: dict[str, Drawing]
) -> None:
    for drawing in (*several.values(), *over_tasks.values()):
        assert drawing.question.endswith("?")
        assert 1 <= drawing.caption.count(". ") + 1 <= 3
        assert drawing.caption.endswith(".")
        assert drawing.alternative.startswith(drawing.question)
        said = drawing.alternative.removeprefix(drawing.question)
        assert "serial" in said
        assert re.search(r"\d", said), drawing.name
        assert "nan" not in said
        assert not re.search(r"\binf\b", said)


def test_each_has_a_table_and_a_picture(several: dict[str, Drawing], over_tasks: dict[str, Drawing]) -> None:
    for drawing in (*several.values(), *over_tasks.values()):
        assert drawing.rows
        assert {len(row) for row in drawing.rows} == {len(drawing.columns)}
        assert drawing.png.startswith(b"\x89PNG")
        assert not any(isinstance(cell, float) and math.isnan(cell) for row in drawing.rows for cell in row)


def test_the_incumbent_is_the_median_of_the_runs_and_a_failure_counts(several: dict[str, Drawing]) -> None:
    view = view_of(SEVERAL)
    scope = view.answers.scopes[0]
    curves = view.curves(scope)["optuna"]
    assert len(curves) == 10
    drawing = several["anytime"]
    rows = [row for row in drawing.rows if row[1] == "optuna" and row[2] == "trials" and row[3] is None]
    assert rows
    for row in rows:
        x, median, high = (number(row[place]) for place in (4, 5, 7))
        reached = [value_at(curve, "trials", x) if curve.status == "done" else None for curve in curves]
        values = [-math.inf if value is None else value for value in reached]
        assert median == pytest.approx(statistics.median(values))
        assert values.count(-math.inf) >= 1
        assert row[6] is None or number(row[6]) <= median
        assert high >= median


def test_what_is_drawn_of_an_incumbent_is_its_table_as_steps() -> None:
    view = view_of(SINGLE)
    line = anytime._lines(view, view.answers.scopes[0])[0]
    with rules():
        axes = Sheet("Which?", [2.0]).panel(0)
        rows = anytime._draw_line(axes, line, view.style(line.label), line.label, 0.0)
    drawn = {tuple(map(tuple, one.get_xydata())) for one in axes.lines}  # type: ignore[arg-type]
    median = [(row[4], row[5]) for row in rows if row[3] is None]
    assert any(set(median) <= points for points in map(set, drawn))
    assert all(one.get_drawstyle() == "steps-post" for one in axes.lines if len(one.get_xdata()) > 1)  # type: ignore[arg-type]


def oblique(svg: str) -> int:
    """Return how many pieces of open paths are neither level nor upright."""
    found = 0
    for element in ET.fromstring(svg).iter():
        path = element.get("d", "")
        if not path.startswith("M") or "z" in path or "C" in path or "fill: none" not in element.get("style", ""):
            continue
        points = [(float(x), float(y)) for x, y in re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", path)]
        starts = {place for place, command in enumerate(re.findall(r"[ML]", path)) if command == "M"}
        pairs = [(points[place - 1], points[place]) for place in range(1, len(points)) if place not in starts]
        found += sum(abs(a - c) > 0.02 and abs(b - d) > 0.02 for (a, b), (c, d) in pairs)
    return found


def test_no_incumbent_is_interpolated(several: dict[str, Drawing]) -> None:
    assert oblique(several["anytime"].svg) == 0
    assert oblique(several["ecdf"].svg) == 0
    assert oblique(several["learning"].svg) > 0  # lines from epoch to epoch: the check sees them


def test_a_share_with_failures_never_reaches_one(several: dict[str, Drawing]) -> None:
    last: dict[object, float] = {}
    for _, adapter, clock, _, share in several["ecdf"].rows:
        last[adapter, clock] = number(share)
    assert last["optuna", "trials"] <= 0.9
    assert last["serial", "trials"] > last["optuna", "trials"]


def test_phases_are_medians_with_a_point_per_run(several: dict[str, Drawing]) -> None:
    view = view_of(SEVERAL)
    group = next(group for group in view.answers.groups if group.label == "serial")
    runs = [run for run in view.runs(group) if run.is_done]
    rows = [row for row in several["phases"].rows if row[1] == "serial"]
    parts = {row[2]: row[4] for row in rows if row[3] is None}
    deploy = [run.value("time.deploy") or 0.0 for run in runs]
    assert parts["deploy"] == pytest.approx(statistics.median(deploy) / 1000)
    points = {row[3]: row[4] for row in rows if row[3] is not None}
    whole = {run.ref.seed: (run.value("time.jct_without_metric_collection") or 0) / 1000 for run in runs}
    assert points == pytest.approx(whole)


def test_every_pair_of_seeds_is_a_dot(several: dict[str, Drawing]) -> None:
    view = view_of(SEVERAL)
    drawing = several["paired"]
    expected = sum(item.difference is not None for verdict in view.answers.verdicts for item in verdict.differences)
    assert sum(seed is not None for seed in column(drawing, "seed")) == expected > 0
    infinite = [row for row in drawing.rows if isinstance(row[5], float) and math.isinf(row[5])]
    assert {row[4] for row in infinite} == {1}  # the seed that failed
    assert not any("katib" in str(name) for name in (*column(drawing, "one"), *column(drawing, "other")))


def test_what_is_emulated_is_shown_with_its_quality_and_price_and_said_so(several: dict[str, Drawing]) -> None:
    drawing = several["quality_price"]
    assert any("katib" in str(label) for label in column(drawing, "adapter"))
    assert "(derived), emulated" in drawing.alternative


def test_gantt_says_which_run_and_why(several: dict[str, Drawing]) -> None:
    drawing = several["gantt"]
    assert "nearest to its median" in drawing.caption
    assert re.search(r"serial \(seed \d", drawing.alternative)
    assert {"completed", "pruned", "overhead"} <= set(column(drawing, "what"))


def test_learning_curves_end_where_trials_were_stopped(several: dict[str, Drawing]) -> None:
    drawing = several["learning"]
    ends: dict[tuple[object, ...], int] = {}
    for adapter, _, trial, what, _, epoch, _ in drawing.rows:
        key = (adapter, trial, what)
        ends[key] = max(ends.get(key, 0), int(number(epoch)))
    assert {end for (*_, what), end in ends.items() if what == "stopped early"} == {SEVERAL.epochs // 2}
    assert {end for (*_, what), end in ends.items() if what == "trained to its end"} == {SEVERAL.epochs}
    assert sum(bool(row[4]) for row in drawing.rows) == SEVERAL.epochs * len({row[0] for row in drawing.rows})  # one each


def test_intervals_over_tasks_are_those_of_the_answers(over_tasks: dict[str, Drawing]) -> None:
    view = view_of(OVER_TASKS)
    expected = {
        (one.question.name, label, interval.estimate, interval.low, interval.high)
        for one in view.answers.across
        for label, interval in one.iqm_regret.items()
    }
    assert {(row[0], row[2], row[3], row[4], row[5]) for row in over_tasks["regret"].rows} == expected


def test_without_tasks_or_anchors_there_is_no_regret() -> None:
    assert draw("regret", SINGLE) is None
    assert draw("regret", Made(seeds=(0, 1), tasks=("a", "b"))) is None


def test_many_scopes_are_limited_and_it_is_said() -> None:
    many = Made(adapters=("serial",), seeds=(0,), samplers=tuple(f"s{number}" for number in range(14)), trials=2)
    view = view_of(many)
    scopes, note = view.scopes()
    assert (len(scopes), len(view.answers.scopes)) == (12, 14)
    assert "12 of 14 scopes" in note
    drawing = draw("phases", view)
    assert drawing is not None
    assert note in drawing.note


@pytest.mark.parametrize(("most", "note"), [(1, "Of 2 adapters the first 1 are shown."), (2, "")])
def test_adapters_that_are_left_out_are_counted(most: int, note: str) -> None:
    assert most_note(view_of(SINGLE), most) == note


def test_an_axis_that_counts_has_round_steps() -> None:
    drawing = draw("anytime", Made(seeds=(0, 1), trials=300, epochs=2))
    assert drawing is not None
    assert ">80<" not in drawing.svg
    assert ">100<" in drawing.svg
