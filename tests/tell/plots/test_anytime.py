"""The incumbents by seconds since the job began: medians in which failures count, and only with enough seeds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from builders.made_curves import Made
from tell.plots.made_view import SEVERAL, corners, view
from tuneoff.judge.answers.anytime import curves
from tuneoff.tell.plots.anytime import HEIGHT, LETTER, MOST_PANELS, WIDTH, Panel, panels

pytest.importorskip("scipy")


def drawn(made: Made) -> tuple[list[Panel], int]:
    results, _, setting = view(made)
    return panels(curves(results), {row.label: row.name for row in setting.rows}, [scope.text for scope in setting.scopes])


def test_a_panel_has_a_line_per_framework_that_never_gets_worse() -> None:
    (panel,), left_out = drawn(SEVERAL)
    assert left_out == 0
    assert {line.label for line in panel.lines} == {"serial", "optuna", "katib@emulated"}
    assert panel.metric == "error of validation accuracy (1 − validation accuracy)"
    for line in panel.lines:
        points = corners(line.path)
        assert [y for _, y in points] == sorted(y for _, y in points), "an error falls, and y grows downwards"
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in (*points, *corners(line.band)))
        assert "median of 10 runs" in line.text
        assert "nan" not in line.path + line.band


def test_the_clock_starts_with_the_job_and_not_with_the_first_trial() -> None:
    (panel,), _ = drawn(replace(SEVERAL, failed=()))
    begins = {line.label: corners(line.path)[0][0] for line in panel.lines}
    assert begins["serial"] < begins["optuna"] < begins["katib@emulated"], "each is deployed for longer than the one before it"


def test_a_median_is_there_once_most_runs_have_a_value() -> None:
    (panel,), _ = drawn(replace(SEVERAL, failed=[("optuna", seed) for seed in range(5)]))
    assert "optuna" not in {line.label for line in panel.lines}


def test_with_fewer_seeds_than_a_verdict_needs_nothing_is_drawn() -> None:
    assert drawn(replace(SEVERAL, seeds=range(9))) == ([], 0)


def test_labels_stand_apart_from_each_other() -> None:
    many = replace(SEVERAL, adapters=tuple(f"a{number}" for number in range(6)), emulated=(), failed=(), trials=3)
    (panel,), _ = drawn(many)
    places = [line.label_y for line in panel.lines]
    assert len(places) == 6
    assert all(other - one >= LETTER - 1e-9 for one, other in pairwise(places))


def test_of_many_tasks_some_are_drawn_from_the_first_to_the_last() -> None:
    tasks = [f"task-{number}" for number in range(6)]
    found, left_out = drawn(replace(SEVERAL, adapters=("serial", "optuna"), emulated=(), failed=(), trials=2, tasks=tasks))
    assert (len(found), left_out) == (MOST_PANELS, 2)
    assert [found[place].scope.split()[-1] for place in (0, -1)] == ["task-0", "task-5"]


def test_a_loss_is_drawn_as_it_is() -> None:
    (panel,), _ = drawn(replace(SEVERAL, mode="min", failed=()))
    assert panel.metric == "validation loss"
