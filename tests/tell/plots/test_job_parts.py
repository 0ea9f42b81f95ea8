"""The parts of a bar are of the run in the middle, so they add up to the median that the table has."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from tell.plots.made_view import SEVERAL, question, view
from tuneoff.tell.plots.drawing import values
from tuneoff.tell.plots.shares import PARTS, bars

pytest.importorskip("scipy")


@pytest.mark.parametrize("seeds", [9, 10])
def test_a_bar_ends_at_the_median_of_the_table(seeds: int) -> None:
    _, found, setting = view(replace(SEVERAL, seeds=range(seeds), failed=()))
    time = question(found, "time")
    drawn = bars(setting.rows, setting.scopes[0].text, time)
    assert [bar.row.label for bar in drawn] == [row.label for row in setting.rows]
    for bar in drawn:
        known = dict(values(bar.row.first.group, time))
        assert len(bar.seeds) == (2 if seeds % 2 == 0 else 1)
        assert bar.seconds == pytest.approx(statistics.median(known.values()) / 1000)
        assert [part.name for part in bar.parts] == list(PARTS)
        assert all(part.seconds >= 0 for part in bar.parts)
        assert sum(part.width for part in bar.parts) == pytest.approx(bar.end)
        assert bar.end <= 1 + 1e-9


def test_training_and_waiting_share_the_trials_span() -> None:
    _, found, setting = view(replace(SEVERAL, seeds=(0,), failed=()))
    (bar,) = [bar for bar in bars(setting.rows, setting.scopes[0].text, question(found, "time")) if bar.row.label == "serial"]
    parts = {part.name: part.seconds for part in bar.parts}
    (trials,) = (one.value for one in bar.row.first.group.estimates["time.trial"].values)
    assert trials is not None
    assert parts["training"] + parts["waiting"] == pytest.approx(trials / 1000)
    assert parts["training"] == pytest.approx(0.8 * trials / 1000), "its workers trained for 80 % of that span"
    assert parts["test"] == pytest.approx(0.1)


def test_a_framework_whose_median_is_a_failure_has_no_bar() -> None:
    _, found, setting = view(replace(SEVERAL, failed=[("optuna", seed) for seed in range(6)]))
    drawn = bars(setting.rows, setting.scopes[0].text, question(found, "time"))
    assert [bar.row.label for bar in drawn] == ["serial", "katib@emulated"]
