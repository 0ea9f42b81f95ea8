"""The curves of a matrix: over trial length, else over workers, and none where neither varies."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from builders.made_results import Draw, Entry, Metrics, results
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.choice.choice import Setting
from tuneoff.judge.choice.choose import answered
from tuneoff.judge.results import Results

pytest.importorskip("scipy")
Column = tuple[float, Mapping[str, Any]]  # seconds of a trial, variant
LENGTHS: Sequence[Column] = [(0.1, {"s": 0.1}), (1.0, {"s": 1}), (10.0, {"s": 10})]
ADDED = {"serial": 2.0, "optuna": 20.0, "ray-tune": 400.0}  # ms per trial
QUESTIONS = {"time": "time.jct", "overhead": "overhead.per_trial"}


def runs(seconds: float, added: float, epochs: int = 1, each: float = 0.0) -> Draw:
    """Return values of runs whose trials take so long, to which about `added` ms are added, and `each` ms to their reports."""

    def draw(seed: int) -> Metrics:
        parts = dict.fromkeys(("time.deploy", "time.setup", "time.result_collection", "time.undeploy"), 1.0)
        share = 1 + 0.01 * random.Random(seed).gauss(0, 1)
        overhead = dict.fromkeys(("overhead.per_trial", "overhead.further_trial"), added * share)
        reports = {
            "overhead.per_report": each,
            "overhead.reports": float(epochs),
            "epochs.trained": 10.0 * epochs,
            "trials.used": 10.0,
        }
        times = {"overhead.job_start": 1.0, "time.jct": 1000.0, "trial_execution.median": 1000 * seconds}
        return {**parts, **overhead, **reports, **times}

    return draw


def results_of(*columns: Column, grows: float = 0.0, seeds: int = 5) -> Results:
    """Return the results of these columns. `grows`: ms that are added per second of a trial."""
    entries = [
        Entry(name, runs(seconds, added + grows * seconds), variant=variant)
        for seconds, variant in columns
        for name, added in ADDED.items()
    ]
    return results(entries, range(seeds), questions=QUESTIONS, primary_metric="time.jct")


def setting_of(*columns: Column, grows: float = 0.0, seeds: int = 5) -> Setting:
    """Return the setting of these columns."""
    return answered(results_of(*columns, grows=grows, seeds=seeds)).choice.settings[0]


def test_over_trial_length_the_shortest_trials_predict_the_longer_ones() -> None:
    setting = setting_of((10.0, {"s": 10}), (0.1, {"s": 0.1}), (1.0, {"s": 1}))
    (curve,) = setting.curves
    assert (curve.over, set(curve.lines)) == ("trial_seconds", set(ADDED))
    for label, points in curve.lines.items():
        assert [point.x for point in points] == pytest.approx([0.1, 1, 10])
        assert points[0].predicted is None
        for point in points:
            assert point.value.low < point.value.estimate < point.value.high
            assert point.value.estimate == pytest.approx(ADDED[label] / 10 / point.x, rel=0.05)
        assert [point.predicted for point in points[1:]] == pytest.approx([point.value.estimate for point in points[1:]])


def test_a_framework_that_adds_more_to_longer_trials_is_not_what_was_predicted() -> None:
    (curve,) = setting_of((0.1, {"s": 0.1}), (10.0, {"s": 10}), grows=100.0).curves
    first, last = curve.lines["optuna"]
    assert last.predicted == pytest.approx(first.value.estimate / 100)
    assert last.predicted is not None
    assert last.value.estimate > 10 * last.predicted


def test_the_share_agrees_with_the_length_that_the_choice_tells() -> None:
    setting = setting_of((0.1, {"s": 0.1}), (1.0, {"s": 1}))
    for row in setting.rows:
        for point in setting.curves[0].lines[row.label]:
            length = row.columns[point.scope].added.lengths[0]
            assert point.value.estimate * point.x == pytest.approx(100 * length.share / 2 * length.seconds)


def test_over_workers_nothing_is_predicted() -> None:
    setting = setting_of(*((0.5, {"workers.count": count}) for count in (4, 1, 2)))
    (curve,) = setting.curves
    assert curve.over == "workers"
    assert all([point.x for point in points] == [1, 2, 4] for points in curve.lines.values())
    assert all(point.predicted is None for points in curve.lines.values() for point in points)


def test_what_goes_along_with_the_workers_parts_no_curve_and_what_multiplies_does() -> None:
    along = setting_of(*((0.5, {"workers.count": count, "trials": 10 * count}) for count in (1, 2)))
    assert [len(points) for (curve,) in [along.curves] for points in curve.lines.values()] == [2] * len(ADDED)
    both = setting_of(*((0.5, {"workers.count": count, "trials": trials}) for count in (1, 2) for trials in (10, 20)))
    assert [curve.over for curve in both.curves] == ["workers"] * 2
    assert all(one.x < other.x for curve in both.curves for points in curve.lines.values() for one, other in pairwise(points))


def test_where_both_vary_there_is_a_curve_over_length_for_each_number_of_workers() -> None:
    setting = setting_of(*((seconds, {"workers.count": count, "s": seconds}) for count in (1, 2) for seconds in (0.1, 1.0)))
    assert [(curve.over, curve.beside) for curve in setting.curves] == [
        ("trial_seconds", "1 worker"),
        ("trial_seconds", "2 workers"),
    ]


@pytest.mark.parametrize(
    "columns",
    [[(0.5, {})], [(0.5, {"a": 1}), (0.6, {"a": 2})], [(0.00001, {"a": 1}), (0.5, {"a": 2})]],
    ids=["one column", "as long", "no time"],
)
def test_where_neither_varies_there_is_no_curve(columns: list[Column]) -> None:
    assert setting_of(*columns).curves == ()


def test_one_seed_has_no_interval_and_json_says_why() -> None:
    choice = answered(results_of((0.1, {"s": 0.1}), (1.0, {"s": 1}), seeds=1)).choice
    text = json.dumps(choice_to_json(choice), allow_nan=False)
    (curve,) = json.loads(text)["settings"][0]["curves"]
    first, last = curve["lines"]["optuna"]
    assert curve["over"] == "trial_seconds"
    assert first["predicted"] is None
    assert first["predicted_reason_if_null"]
    assert last["predicted"] == pytest.approx(first["value"]["estimate"] / 10)
    assert last["value"]["low"] is None
    assert last["value"]["low_reason_if_null"]
