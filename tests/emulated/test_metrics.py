"""What is read out of metrics files, odd cases included, and the rules of early stopping on reports, as in Katib v0.19."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from katib_emulation.collector import UNAVAILABLE, ZERO_TIME, CollectorError, CollectorSettings, Observation, StopRule

TEXT = CollectorSettings("t", ("loss", "accuracy"))
TIME = "2026-01-01T12:00:00.123456Z"


def losses(content: str, how: CollectorSettings = TEXT) -> list[str]:
    return [observation.value for observation in how.observations(content) if observation.name == "loss"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("loss=0.3", "0.3"),
        ("loss = -7.53e-05", "-7.53e-05"),
        ("loss=.98", ".98"),
        ("loss=1E0", "1E0"),
        ("loss=nan", ""),
        ("loss=inf", ""),
        ("loss=-inf", "-"),
        ("loss=1,234.5", "1"),
        ("loss=0x1p3", "0"),
        ("val/loss=0.5", "0.5"),
        ("val.loss=0.5", "0.5"),
        ("epoch 3: loss=0.25, more", "0.25"),
    ],
)
def test_the_default_filter_reads(line: str, value: str) -> None:
    assert losses(line) == [value]


@pytest.mark.parametrize("line", ["loss: 0.3", '{"loss": "0.3"}', "val_loss=0.3", "train-loss=0.3", "Loss=0.3", "", "los=1"])
def test_what_is_no_metric_line_leaves_the_objective_unavailable(line: str) -> None:
    assert TEXT.observations(line) == [Observation(ZERO_TIME, "loss", UNAVAILABLE)]


def test_many_metrics_of_a_line_have_its_time() -> None:
    found = TEXT.observations(f"{TIME} loss=0.5 accuracy=0.9 other=1")
    assert found == [Observation(TIME, "loss", "0.5"), Observation(TIME, "accuracy", "0.9")]


@pytest.mark.parametrize("line", ["loss=0.5", "yesterday loss=0.5", "2026-01-01 loss=0.5", f" {TIME} loss=0.5"])
def test_a_line_that_does_not_begin_with_a_time_has_the_zero_time(line: str) -> None:
    assert TEXT.observations(line)[0].time == ZERO_TIME


def test_without_the_objective_the_other_metrics_are_not_reported() -> None:
    assert TEXT.observations(f"{TIME} accuracy=0.9") == [Observation(ZERO_TIME, "loss", UNAVAILABLE)]


def test_own_filters_replace_the_default_one() -> None:
    own = CollectorSettings("t", ("loss",), filters=(r"(\w+) is ([0-9.]+)", r"\{metric: ([\w|-]+), value: ([0-9.]+)\}"))
    assert losses("loss is 0.5\n{metric: loss, value: 0.25}\nloss=7", own) == ["0.5", "0.25"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_value_that_is_no_number_ends_the_collector_that_watches(value: str) -> None:
    with pytest.raises(CollectorError, match="Unable to parse value"):
        TEXT.values(f"loss={value}", "loss")


def test_a_watched_line_without_the_rule_s_metric_is_not_looked_at() -> None:
    assert TEXT.values("accuracy=nan", "loss") == []
    assert TEXT.values("accuracy=1 loss=2", "loss") == [("accuracy", 1.0), ("loss", 2.0)]


def stopped_at(value: str, comparison: str, step: int, reports: Sequence[float]) -> int | None:
    """Return the number of the report (from 1) at which the trial has to stop."""
    rule = StopRule({"name": "loss", "value": value, "comparison": comparison, "startStep": step})
    return next((number for number, report in enumerate(reports, start=1) if rule.is_met(report)), None)


@pytest.mark.parametrize(
    ("reports", "number"),
    [
        pytest.param([5, 4, 3, 2.5], 3, id="worse at the start step"),
        pytest.param([5, 4, 1, 9, 9, 9], None, id="worse after the start step only"),
        pytest.param([1, 9, 9, 9], None, id="good before the start step"),
        pytest.param([9, 9], None, id="not yet at the start step"),
        pytest.param([9, 9, 2, 9], None, id="as good as the bound"),
    ],
)
def test_a_trial_is_stopped_at_the_report_that_meets_its_rule(reports: list[float], number: int | None) -> None:
    assert stopped_at("2", "greater", 3, reports) == number


def test_the_best_of_a_maximized_objective_is_its_greatest() -> None:
    assert stopped_at("0.5", "less", 2, [0.1, 0.2]) == 2
    assert stopped_at("0.5", "less", 2, [0.9, 0.2]) is None


def test_a_rule_whose_value_is_no_number_ends_the_collector() -> None:
    with pytest.raises(CollectorError, match="rule metric loss"):
        stopped_at("", "less", 1, [1])
