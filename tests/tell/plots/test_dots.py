"""Each run is a dot on an axis that all frameworks share; what failed is told, and counts in the median."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tell.plots.made_view import SEVERAL, question, view
from tuneoff.tell.plots.drawing import MOST_DOTS, axis_unit, shared_scale, strip, values

pytest.importorskip("scipy")


def test_each_run_is_a_dot_with_its_seed_its_value_and_its_run() -> None:
    _, found, _ = view(SEVERAL)
    time = question(found, "time")
    of = {group.label: group for group in found.groups}
    axis = shared_scale(found.groups, time)
    assert axis is not None
    drawn = strip(of["serial"], time, axis)
    assert {dot.run_id for dot in drawn.dots} == {run.run_id for run in of["serial"].runs}
    assert [dot.at for dot in drawn.dots] == sorted(dot.at for dot in drawn.dots)
    seed, value = values(of["serial"], time)[3]
    (dot,) = [dot for dot in drawn.dots if dot.text.startswith(f"seed {seed}: ")]
    assert dot.text == f"seed {seed}: {value / 1000:.2f} s"
    assert dot.at == pytest.approx(axis.at(value / 1000))
    assert axis_unit(time) == "s"


def test_a_failed_run_has_no_dot_and_moves_the_median() -> None:
    _, found, _ = view(SEVERAL)
    time, optuna = question(found, "time"), next(group for group in found.groups if group.label == "optuna")
    axis = shared_scale(found.groups, time)
    assert axis is not None
    drawn = strip(optuna, time, axis)
    assert (len(drawn.dots), drawn.failed) == (9, (1,))
    ordered = sorted(value for _, value in values(optuna, time))
    assert drawn.median == pytest.approx(axis.at((ordered[4] + ordered[5]) / 2000)), "of nine values and a failure"


def test_where_most_runs_failed_there_is_no_median() -> None:
    _, found, _ = view(replace(SEVERAL, failed=[("optuna", seed) for seed in range(6)]))
    time, optuna = question(found, "time"), next(group for group in found.groups if group.label == "optuna")
    axis = shared_scale(found.groups, time)
    assert axis is not None
    assert strip(optuna, time, axis).median is None


def test_dots_have_an_end_and_keep_the_least_and_the_most() -> None:
    many = MOST_DOTS + 20
    _, found, _ = view(replace(SEVERAL, adapters=("serial",), seeds=range(many), trials=1, emulated=(), failed=()))
    time = question(found, "time")
    axis = shared_scale(found.groups, time)
    assert axis is not None
    drawn = strip(found.groups[0], time, axis)
    ordered = sorted(value for _, value in values(found.groups[0], time))
    assert (len(drawn.dots), drawn.more) == (MOST_DOTS, 20)
    assert (drawn.dots[0].at, drawn.dots[-1].at) == (axis.at(ordered[0] / 1000), axis.at(ordered[-1] / 1000))
