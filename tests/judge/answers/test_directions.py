"""Direction, scale and unit of metrics, held to what other parts know of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.present import present
from builders.results_folders import write_examples
from metric_directions import DIRECTIONS
from tuneoff.judge.answers.compute import _median
from tuneoff.judge.answers.run_values import better, bounds, default_unit, is_of_objective, scale
from tuneoff.judge.results import read_results

OBJECTIVE = "validation_accuracy"


@pytest.mark.parametrize("metric", [name for name in DIRECTIONS if not name.startswith("quality.")])
def test_what_is_used_up_is_better_small_and_what_is_done_is_better_great(metric: str) -> None:
    assert better(metric, OBJECTIVE, "max") == {"lower": "min", "higher": "max"}[DIRECTIONS[metric].better]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_quality_follows_the_objective_and_its_test_score_too(mode: str) -> None:
    for metric in ("quality.test", "quality.validation", "test.test_accuracy"):
        assert better(metric, OBJECTIVE, mode) == mode  # type: ignore[arg-type]
        assert is_of_objective(metric, OBJECTIVE)
    assert better("test.test_loss", OBJECTIVE, "max") == "min"
    assert better("test.test_macro_f1", "validation_loss", "min") == "max"
    assert better("quality.optimism", OBJECTIVE, "max") == "min"
    assert not is_of_objective("test.test_loss", OBJECTIVE)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("time.jct", "ratio"),
        ("trials.per_second", "ratio"),
        ("energy.per_completed_trial_without_test", "ratio"),
        ("waste.default.cost", "ratio"),
        ("quality.test", "difference"),
        ("slots.idle_share", "difference"),
        ("slots.utilization", "difference"),
        ("trials.failed", "difference"),
        ("goal.trials", "difference"),
    ],
)
def test_what_has_a_true_zero_and_is_no_share_is_compared_by_its_ratio(metric: str, expected: str) -> None:
    assert scale(metric) == expected


def test_values_of_records_have_the_unit_of_their_metric_and_are_within_its_bounds(tmp_path: Path) -> None:
    write_examples(tmp_path / "r")
    for record in read_results(tmp_path / "r").records:
        objective = record.run_spec().experiment.objective.metric
        for name, value in record.metrics.items():
            low, high = bounds(name, objective)
            assert value.unit == default_unit(name, objective), name
            assert value.value is None or low <= value.value <= high, name


@pytest.mark.parametrize("times", [1, 100])
def test_an_interval_is_cut_off_where_a_score_cannot_be_unless_scores_are_given_in_percent(times: int) -> None:
    found = present(_median([value * times for value in (0.90, 0.97, 0.99)], bounds("quality.test", OBJECTIVE), 0.95, 0.0))
    assert (found.high == 1.0) if times == 1 else (found.high > 100)
