"""The two worked examples of the metrics' definition, number by number."""

from __future__ import annotations

import pytest

from event_logs import Log, example_a, example_b
from tuneoff.experiment.spec import RunSpec
from tuneoff.metrics.all import compute_metrics
from tuneoff.metrics.slots import slot_times, slot_window
from tuneoff.metrics.spans import PARTS
from tuneoff.records.derive import derive

EXPECTED_A: dict[str, float | None] = {
    "time.jct": 176_000,
    "time.deploy": 10_000,
    "time.setup": 2_000,
    "time.trial": 150_000,
    "time.result_collection": 2_000,
    "time.test": 6_000,
    "time.metric_collection": 1_000,
    "time.undeploy": 5_000,
    "time.unassigned": 0,
    "time.jct_without_metric_collection": 175_000,
    "time.preparation": 12_000,
    "time.optimization": 160_000,
    "time.evaluation": 8_000,
    "time.result_collection_from_last_completed": 52_000,
    "slots.busy": 210,
    "slots.overhead": 0,
    "slots.idle": 98,
    "slots.slot_time": 308,
    "slots.idle_share": 31.82,
    "slots.utilization": 70,
    "slots.greatest_overlap": 2,
    "slots.trial_gap_median": 0,
    "trial_execution.mean": 70_000,
    "trial_execution.max": 100_000,
    "trials.used": 3,
    "trials.completed": 2,
    "trials.pruned": 1,
    "epochs.trained": 10,
    "stop_latency.max": 0,
    "stop.epochs_after_decision": 0,
    "waste.strict.time": 0,
    "waste.default.time": 50_000,
    "waste.non_best.time": 110_000,
    "waste.post_goal.time": None,
    "goal.seconds": None,
    "quality.validation": 0.95,
    "quality.test": 0.93,
    "quality.optimism": 0.02,
}

EXPECTED_B: dict[str, float | None] = {
    "time.jct": 52_000,
    "time.preparation": 6_000,
    "time.optimization": 43_000,
    "time.evaluation": 5_000,
    "time.result_collection": 1_000,
    "time.result_collection_from_last_completed": 12_000,
    "trials.used": 3,
    "trials.completed": 2,
    "trials.pruned": 1,
    "trials.failed": 0,
    "trials.retries": 1,
    "trials.refused": 0,
    "epochs.trained": 10,
    "slots.busy": 50,
    "slots.overhead": 12,
    "slots.idle": 16,
    "slots.slot_time": 78,
    "slots.idle_share": 20.51,
    "slots.overhead_share": 15.38,
    "slots.utilization": 67.57,
    "slots.greatest_overlap": 2,
    "overhead.per_trial": 14_000 / 3,  # the 12 slot-s of overhead, and 2 between a process's exit and the next start
    "overhead.vacant": 2_000 / 3,
    "overhead.process_start": 4_500 / 3,
    "overhead.dispatch": 3_500 / 3,
    "overhead.between": 0,
    "overhead.report": 2_000 / 3,
    "overhead.exit": 2_000 / 3,
    "stop_latency.median": 3_000,
    "stop.busy_after_decision": 3_000,
    "waste.strict.time": 4_000,
    "waste.default.time": 12_000,
    "waste.non_best.time": 32_000,
    "waste.post_goal.time": None,
}


@pytest.mark.parametrize(("example", "expected"), [(example_a(), EXPECTED_A), (example_b(), EXPECTED_B)], ids=["A", "B"])
def test_every_time_figure_of_the_worked_example_is_met(example: tuple[Log, RunSpec], expected: dict[str, float | None]) -> None:
    metrics = compute_metrics(derive(example[0].pairs(), example[1]))
    for name, value in expected.items():
        assert metrics[name].value == (value if value is None else pytest.approx(value, rel=1e-3, abs=1e-5)), name


@pytest.mark.parametrize("example", [example_a(), example_b()], ids=["A", "B"])
def test_the_parts_sum_to_the_jct(example: tuple[Log, RunSpec]) -> None:
    metrics = compute_metrics(derive(example[0].pairs(), example[1]))
    assert sum(metrics[f"time.{part}"].value or 0 for part in PARTS) == metrics["time.jct"].value


def test_the_window_of_idle_figures_runs_from_the_end_of_deploy_to_the_best_known() -> None:
    log, spec = example_b()
    run = derive(log.pairs(), spec)
    window = slot_window(run)
    assert window == (5_000_000_000, 44_000_000_000)
    times = slot_times(run, window)
    assert [time.busy_ns // 1_000_000 for time in times] == [29_000, 21_000]
    assert all(time.busy_ns + time.overhead_ns + time.idle_ns == window[1] - window[0] for time in times)


def test_every_missing_value_says_why() -> None:
    log, spec = example_a()
    for name, value in compute_metrics(derive(log.pairs(), spec)).items():
        assert value.value is not None or value.reason_if_null, name
