"""Counts and qualities are judged of continued runs and between machines; nothing that goes with time is."""

from __future__ import annotations

import pytest

from builders.made_results import Entry, results
from tuneoff.experiment.metric_catalogue import metric_names
from tuneoff.judge.answers.run_values import value
from tuneoff.judge.runs import grouped
from tuneoff.measure.resumed import is_counted, without_times


def test_answers_have_no_metric_that_the_record_of_a_continued_run_has_not() -> None:
    whole = dict.fromkeys(metric_names(), 1.0)
    (cell,) = grouped(results([Entry("optuna", lambda seed: whole, continued=[0])], seeds=[0]))
    (run,) = cell.runs
    assert run.record is not None
    kept = {name for name, metric in without_times(run.record.metrics).items() if metric.value is not None}
    judged = {name for name in whole if value(run, name).value is not None}
    assert judged < kept
    assert judged == {name for name in whole if is_counted(name)}


@pytest.mark.parametrize("name", ["trials.per_second", "time.jct", "energy.trials", "waste.default.time"])
def test_rates_times_and_energy_are_not_judged(name: str) -> None:
    assert name in metric_names()
    assert not is_counted(name)


@pytest.mark.parametrize("name", ["quality.test", "trials.completed", "failures.workload"])
def test_counts_and_qualities_are(name: str) -> None:
    assert name in metric_names()
    assert is_counted(name)
