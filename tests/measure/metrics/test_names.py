"""The list of metric names is the one that `with_metrics` gives."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from builders.event_logs import example_a, example_b
from tuneoff.experiment.metric_catalogue import general_name, is_metric, metric, metric_names, unknown_metric
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive


def differences(computed: Iterable[str], listed: Iterable[str]) -> set[str]:
    """Return the names that only one side has."""
    return {general_name(name) for name in computed} ^ set(listed)


def computed_names() -> set[str]:
    return {name for log, spec in (example_a(), example_b()) for name in with_metrics(derive(log.pairs(), spec)).metrics}


def test_the_listed_names_are_the_computed_ones() -> None:
    assert differences(computed_names(), metric_names()) == set()
    assert all(map(is_metric, computed_names()))


def test_a_metric_that_is_not_listed_and_one_that_is_not_computed_are_found() -> None:
    assert differences(computed_names() | {"energy.joules"}, metric_names()) == {"energy.joules"}
    assert differences(computed_names(), (*metric_names(), "cost.total")) == {"cost.total"}


@pytest.mark.parametrize("name", ["time.jct", "test.any_score", "stage.ask", "slots.busy[3]"])
def test_a_name_may_have_a_slot_score_or_stage(name: str) -> None:
    assert is_metric(name)


@pytest.mark.parametrize(
    "name", ["time", "time.", "test.", "slots.busy[N]", "slots.busy[x]", "time.jct[0]", "", "no.such.metric"]
)
def test_other_names_are_none(name: str) -> None:
    assert not is_metric(name)
    assert unknown_metric(name).startswith(f"no metric named {name!r}")


@pytest.mark.parametrize("name", ["trials.per_second", "time.jct", "energy.trials", "waste.default.time", "goal.trials"])
def test_rates_times_and_energy_are_not_compared_between_machines(name: str) -> None:
    assert is_metric(name)
    assert not metric(name).is_counted


@pytest.mark.parametrize("name", ["quality.test", "trials.completed", "failures.workload", "test.accuracy"])
def test_counts_and_qualities_are(name: str) -> None:
    assert is_metric(name)
    assert metric(name).is_counted
