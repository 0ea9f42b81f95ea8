"""Adapters that are worse in one known way: the intended metric moves by the known amount, and no metric gets better."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import known_answers
from known_answers import REPORT_SECONDS
from metric_directions import DIRECTIONS, EXCLUDED, Values, improvements
from tuneoff.experiment.accounting.resolve import DEFAULT_PRICES
from tuneoff.measure.stored import read_runs
from tuneoff.record.metric_value import metric_value
from tuneoff.record.run_record import RunRecord

TRIALS, EPOCHS, EPOCH_SECONDS = 10, 10, 0.03
STOPS = {1: 2, 3: 2, 5: 9, 6: 2, 7: 2}  # index of a configuration -> epoch after which it must stop
PER_COMPLETED = tuple(f"{what}.per_completed_trial{test}" for what in ("energy", "cost") for test in ("", "_without_test"))
# Nothing that a trial does after it should have stopped makes it cheaper, but it is one more trial that completed, and those
# epochs share the start-up: runs that stop different trials are not compared by these.
NOT_BY_STOPS = {"trials.completed", "energy.per_trained_epoch", *PER_COMPLETED}

Runs = Mapping[str, Sequence[RunRecord]]
REPEATS = 3  # of a matrix: what is better by chance, as other programs load the machine, is not better each time


class Repeated:
    """A matrix that is run when it is asked for, and again when one run of it is no evidence."""

    def __init__(self, make: Callable[[], Runs]) -> None:
        self._make = make
        self._made: list[Runs] = []

    def __getitem__(self, adapter: str) -> Sequence[RunRecord]:
        return self.take(0)[adapter]

    def take(self, number: int) -> Runs:
        while len(self._made) <= number:
            self._made.append(self._make())
        return self._made[number]

    def improved(self, worse: str, honest: str, without: Collection[str] = ()) -> list[str]:
        """Return each metric that is better in an adapter's runs than in an honest one's, in every repetition."""
        return self._in_each(lambda runs: improvements(kept(runs[worse][0], without), *values(runs[honest])))

    def apart(self, adapter: str) -> list[str]:
        """Return each metric in which one of two honest runs is better than the other, in every repetition."""
        return self._in_each(
            lambda runs: [
                line
                for one, other in (runs[adapter], reversed(runs[adapter]))
                for line in improvements(one.metrics, other.metrics)
            ]
        )

    def added(self, worse: str, honest: str, name: str, expected: float, within: float) -> float:
        """Return by how much a metric is larger than in an honest run: the first repetition that agrees with what is expected."""
        found = 0.0
        for number in range(REPEATS):
            runs = self.take(number)
            found = more(runs[worse][0], runs[honest], name)
            if abs(found - expected) <= within:
                break
        return found

    def dearer(self, worse: str, honest: str, name: str, times: float) -> bool:
        """Return whether a metric is so many times as large as in every honest run, in any repetition."""
        return any(
            value(runs[worse][0], name) > times * max(value(record, name) for record in runs[honest])
            for runs in map(self.take, range(REPEATS))
        )

    def _in_each(self, find: Callable[[Runs], list[str]]) -> list[str]:
        found = find(self.take(0))
        for number in range(1, REPEATS):
            if not found:
                return []
            names = {line.partition(":")[0] for line in find(self.take(number))}
            found = [line for line in found if line.partition(":")[0] in names]
        return found


def compare(folder: Path, adapters: Sequence[str], **changes: Any) -> Runs:
    """Run one experiment with each adapter through the command, and return the records by the adapter's name.

    In a process of its own: what this one has started for other tests and waits for meanwhile would be charged to a run.
    """
    content = {
        "name": "known",
        "workload": {"name": "sleep", "options": {"epoch_seconds": EPOCH_SECONDS}},
        "sampler": "fixed",
        "configurations": {"sample": TRIALS, "seed": 0},
        "budget": {"trials": TRIALS, "epochs_per_trial": EPOCHS},
        "workers": {"count": 2},
        "seeds": [0],
        "reports": "every_epoch",
        "warm_up": False,
        "power": {"meter": "model", "options": {"cpu": "default"}},  # so that the same share of it is noise on every machine
        "prices": str(prices_without_steps(folder)),
        "adapters": list(adapters),
        **changes,
    }
    file = folder / "known.yaml"
    file.write_text(json.dumps(content))
    command = [sys.executable, "-m", "tuneoff", "compare", "--no-report", str(file), "--output", str(folder / "results")]
    subprocess.run(command, check=True)
    runs: dict[str, list[RunRecord]] = {}
    for record in read_runs(folder / "results"):
        runs.setdefault(record.run_spec().adapter.removeprefix("known_answers:"), []).append(record)
    return runs


def prices_without_steps(folder: Path) -> Path:
    """Write the shipped prices, billed to the nanosecond: in steps of 1 s, 2.01 s cost half as much again as 1.99 s."""
    shipped = DEFAULT_PRICES.read_text()
    steps = "billing_granularity_seconds: 1\n"
    assert shipped.count(steps) == 1
    file = folder / "prices.yaml"
    file.write_text(shipped.replace(steps, "billing_granularity_seconds: 0\n"))
    return file


@pytest.fixture(scope="module")
def importable() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(known_answers.__file__).parent))
        yield


@pytest.fixture(scope="module")
def runs(importable: None, tmp_path_factory: pytest.TempPathFactory) -> Repeated:
    adapters = ["serial", "serial", "known_answers:SlowReports", "known_answers:Crashing"]
    return Repeated(lambda: compare(tmp_path_factory.mktemp("known"), adapters))


@pytest.fixture(scope="module")
def stopped(importable: None, tmp_path_factory: pytest.TempPathFactory) -> Repeated:
    stops = [{"index": index, "after_epoch": epoch} for index, epoch in STOPS.items()]
    adapters = ["serial", "serial", "known_answers:StopsIgnored"]
    return Repeated(lambda: compare(tmp_path_factory.mktemp("stops"), adapters, pruner="scripted", stops=stops))


def value(record: RunRecord, name: str) -> float:
    found = record.metrics[name].value
    assert found is not None, record.metrics[name].reason_if_null
    return found


def more(worse: RunRecord, honest: Sequence[RunRecord], name: str) -> float:
    """Return by how much a metric is larger than in the honest run that it is nearest to."""
    return min((value(worse, name) - value(record, name) for record in honest), key=abs)


def assert_added(runs: Repeated, adapters: tuple[str, str], name: str, expected: float, within: float) -> None:
    found = runs.added(*adapters, name, expected, within)
    assert found == pytest.approx(expected, abs=within), name


def kept(record: RunRecord, without: Collection[str]) -> Values:
    return {name: metric for name, metric in record.metrics.items() if name not in without}


def values(records: Sequence[RunRecord]) -> list[Values]:
    return [record.metrics for record in records]


@pytest.mark.slow
def test_slower_reports_are_found_where_trials_wait_in_report(runs: Repeated) -> None:
    expected_ms = EPOCHS * REPORT_SECONDS * 1e3
    assert_added(runs, ("SlowReports", "serial"), "overhead.report", expected_ms, 0.1 * expected_ms)
    assert_added(runs, ("SlowReports", "serial"), "overhead.per_trial", expected_ms, 0.1 * expected_ms)
    assert_added(runs, ("SlowReports", "serial"), "overhead.per_report", 1000 * REPORT_SECONDS, 100 * REPORT_SECONDS)
    assert_added(runs, ("SlowReports", "serial"), "overhead.further_trial", 0, 10)  # what reports add is not the trial's
    assert_added(runs, ("SlowReports", "serial"), "time.jct", TRIALS / 2 * expected_ms, 0.2 * TRIALS / 2 * expected_ms)
    assert_added(runs, ("SlowReports", "serial"), "trial_execution.mean", 0, 40)  # waiting is not the trial's
    assert runs.improved("SlowReports", "serial") == []


@pytest.mark.slow
def test_a_tenth_of_trials_that_crash_are_failures_and_wasted(runs: Repeated) -> None:
    (crashing,) = runs["Crashing"]
    assert value(crashing, "trials.failed") == TRIALS / 10
    assert value(crashing, "trials.completed") == TRIALS - TRIALS / 10
    failures = [value(crashing, f"failures.{charged}") for charged in ("framework", "workload", "infrastructure", "user")]
    assert sum(failures) == TRIALS / 10
    trained_ms = (EPOCHS - 1) * EPOCH_SECONDS * 1e3 * TRIALS / 10
    assert trained_ms <= value(crashing, "waste.default.time") < trained_ms + 300  # until its end was seen
    assert value(crashing, "waste.default.energy") > 0
    assert value(crashing, "waste.default.cost") > 0
    assert runs.improved("Crashing", "serial") == []


@pytest.mark.slow
def test_ignored_stops_are_counted_with_what_they_cost(stopped: Repeated) -> None:
    (ignoring,), honest = stopped["StopsIgnored"], stopped["serial"]
    late = sum(EPOCHS - epoch for epoch in STOPS.values())
    late_ms = late * EPOCH_SECONDS * 1e3
    assert value(ignoring, "stop.ignored") == len(STOPS)
    assert value(ignoring, "stop.epochs_after_decision") == late
    assert [value(record, "stop.ignored") + value(record, "stop.epochs_after_decision") for record in honest] == [0, 0]
    assert value(ignoring, "stop.busy_after_decision") == pytest.approx(late_ms, rel=0.15)
    assert all(value(record, "stop.busy_after_decision") < 20 for record in honest)
    assert_added(stopped, ("StopsIgnored", "serial"), "waste.default.time", late_ms, 0.2 * late_ms)
    assert value(ignoring, "pruning.saved_epochs") == 0
    assert [value(record, "pruning.saved_epochs") for record in honest] == [late, late]
    assert stopped.improved("StopsIgnored", "serial", NOT_BY_STOPS) == []


@pytest.mark.slow
def test_what_wastes_seconds_costs_energy_carbon_and_money(runs: Repeated) -> None:
    for name in ("energy.job", "energy.per_completed_trial", "carbon.job", "cost.job", "energy.reserved_core_seconds"):
        assert runs.dearer("SlowReports", "serial", name, 1.1), name


@pytest.mark.slow
def test_honest_runs_are_no_better_than_each_other(runs: Repeated, stopped: Repeated) -> None:
    assert [matrix.apart("serial") for matrix in (runs, stopped)] == [[], []]


def test_only_what_is_better_in_each_repetition_is_better() -> None:
    def matrix(seconds: float, trials: int) -> Runs:
        worse = {"time.jct": metric_value(seconds, "ms"), "trials.completed": metric_value(trials, "count")}
        honest = {"time.jct": metric_value(4000.0, "ms"), "trials.completed": metric_value(10, "count")}
        return {"worse": [_with(worse)], "honest": [_with(honest)]}

    matrices = iter([matrix(2000.0, 11), matrix(4000.0, 11), matrix(2000.0, 11)])
    assert Repeated(lambda: next(matrices)).improved("worse", "honest") == ["trials.completed: 11 count, honest 10"]


def _with(metrics: Values) -> RunRecord:
    return SimpleNamespace(metrics=metrics)  # type: ignore[return-value]


def test_every_metric_has_a_better_direction_or_a_reason_to_have_none() -> None:
    from tuneoff.experiment.metric_catalogue import metric_names

    assert set(DIRECTIONS).isdisjoint(EXCLUDED)
    assert {*DIRECTIONS, *EXCLUDED} == set(metric_names())
    assert set(DIRECTIONS) >= NOT_BY_STOPS


def test_a_metric_that_is_better_beyond_its_noise_is_found() -> None:
    honest = {
        "time.jct": metric_value(4000.0, "ms"),
        "trials.completed": metric_value(10, "count"),
        "slots.busy[0]": metric_value(3.0, "s"),
    }
    other = {**honest, "time.jct": metric_value(3900.0, "ms")}
    assert improvements({**honest, "time.jct": metric_value(2801.0, "ms")}, honest) == []
    assert improvements({**honest, "time.jct": metric_value(2600.0, "ms")}, honest, other) == ["time.jct: 2600 ms, honest 3900"]
    assert improvements({**honest, "trials.completed": metric_value(11, "count")}, honest) == [
        "trials.completed: 11 count, honest 10"
    ]
    assert (
        improvements({**honest, "trials.completed": metric_value(9, "count"), "slots.busy[0]": metric_value(1, "s")}, honest)
        == []
    )
