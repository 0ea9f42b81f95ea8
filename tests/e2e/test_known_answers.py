"""Adapters that are worse in one known way: the intended metric moves by the known amount, and no metric gets better."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import known_answers
from known_answers import REPORT_SECONDS, START_SECONDS
from metric_directions import DIRECTIONS, EXCLUDED, Values, improvements
from tuneoff.cli.main import main
from tuneoff.metrics.values import known
from tuneoff.records.model import RunRecord
from tuneoff.records.store import read_runs

TRIALS, EPOCHS, EPOCH_SECONDS = 10, 10, 0.03
STOPS = {1: 2, 3: 2, 5: 9, 6: 2, 7: 2}  # index of a configuration -> epoch after which it must stop
PER_COMPLETED = ("energy.per_completed_trial", "carbon.per_completed_trial", "cost.per_completed_trial")
# Nothing that a trial does after it should have stopped makes it cheaper, but it is one more trial that completed, and those
# epochs share the start-up: runs that stop different trials are not compared by these.
NOT_BY_STOPS = {"trials.completed", "energy.per_trained_epoch", *PER_COMPLETED}

Runs = Mapping[str, Sequence[RunRecord]]


def compare(folder: Path, adapters: Sequence[str], **changes: Any) -> Runs:
    """Run one experiment with each adapter through the command, and return the records by the adapter's name."""
    content = {
        "name": "known",
        "workload": {"name": "sleep", "options": {"epoch_seconds": EPOCH_SECONDS}},
        "sampler": "fixed",
        "configurations": {"sample": TRIALS, "seed": 0},
        "budget": {"trials": TRIALS, "epochs_per_trial": EPOCHS},
        "workers": {"count": 2},
        "seeds": [0],
        "warm_up": False,
        "power": "model",
        "adapters": list(adapters),
        **changes,
    }
    file = folder / "known.yaml"
    file.write_text(json.dumps(content))
    assert main(["compare", str(file), "--output", str(folder / "results")]) == 0
    runs: dict[str, list[RunRecord]] = {}
    for record in read_runs(folder / "results"):
        runs.setdefault(record.run_spec().adapter.removeprefix("known_answers:"), []).append(record)
    return runs


@pytest.fixture(scope="module")
def importable() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(known_answers.__file__).parent))
        yield


@pytest.fixture(scope="module")
def runs(importable: None, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    names = ("SlowReports", "Crashing", "ProcessPerTrial", "ProcessPerTrial", "SlowStarts")
    adapters = ["serial", "serial", *(f"known_answers:{name}" for name in names)]
    return compare(tmp_path_factory.mktemp("known"), adapters)


@pytest.fixture(scope="module")
def stopped(importable: None, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    stops = [{"index": index, "after_epoch": epoch} for index, epoch in STOPS.items()]
    adapters = ["serial", "serial", "known_answers:StopsIgnored"]
    return compare(tmp_path_factory.mktemp("stops"), adapters, pruner="scripted", stops=stops)


def value(record: RunRecord, name: str) -> float:
    found = record.metrics[name].value
    assert found is not None, record.metrics[name].reason_if_null
    return found


def more(worse: RunRecord, honest: Sequence[RunRecord], name: str) -> float:
    """Return by how much a metric is larger than in the honest run that it is nearest to."""
    return min((value(worse, name) - value(record, name) for record in honest), key=abs)


def values(records: Sequence[RunRecord]) -> list[Values]:
    return [record.metrics for record in records]


@pytest.mark.slow
def test_slower_reports_are_found_where_trials_wait_in_report(runs: Runs) -> None:
    (slow,), honest = runs["SlowReports"], runs["serial"]
    expected_ms = EPOCHS * REPORT_SECONDS * 1e3
    assert more(slow, honest, "overhead.report") == pytest.approx(expected_ms, rel=0.1)
    assert more(slow, honest, "overhead.per_trial") == pytest.approx(expected_ms, rel=0.1)
    assert more(slow, honest, "time.jct") == pytest.approx(TRIALS / 2 * expected_ms, rel=0.2)
    assert more(slow, honest, "trial_execution.mean") == pytest.approx(0, abs=40)  # waiting is not the trial's
    assert improvements(slow.metrics, *values(honest)) == []


@pytest.mark.slow
def test_slower_starts_are_found_in_the_start_of_processes(runs: Runs) -> None:
    (slow,), honest = runs["SlowStarts"], runs["ProcessPerTrial"]
    expected_ms = START_SECONDS * 1e3
    assert more(slow, honest, "overhead.process_start") == pytest.approx(expected_ms, rel=0.25)
    assert more(slow, honest, "overhead.submission_to_start") == pytest.approx(expected_ms, rel=0.25)
    assert more(slow, honest, "time.jct") == pytest.approx(TRIALS / 2 * expected_ms, rel=0.25)
    assert improvements(slow.metrics, *values(honest)) == []


@pytest.mark.slow
def test_a_tenth_of_trials_that_crash_are_failures_and_wasted(runs: Runs) -> None:
    (crashing,), honest = runs["Crashing"], runs["serial"]
    assert value(crashing, "trials.failed") == TRIALS / 10
    assert value(crashing, "trials.completed") == TRIALS - TRIALS / 10
    failures = [value(crashing, f"failures.{charged}") for charged in ("framework", "workload", "infrastructure", "user")]
    assert sum(failures) == TRIALS / 10
    trained_ms = (EPOCHS - 1) * EPOCH_SECONDS * 1e3 * TRIALS / 10
    for policy in ("strict", "default"):
        assert trained_ms <= value(crashing, f"waste.{policy}.time") < trained_ms + 300  # until its end was seen
        assert value(crashing, f"waste.{policy}.energy") > 0
        assert value(crashing, f"waste.{policy}.cost") > 0
    assert improvements(crashing.metrics, *values(honest)) == []


@pytest.mark.slow
def test_ignored_stops_are_counted_with_what_they_cost(stopped: Runs) -> None:
    (ignoring,), honest = stopped["StopsIgnored"], stopped["serial"]
    late = sum(EPOCHS - epoch for epoch in STOPS.values())
    assert value(ignoring, "stop.ignored") == len(STOPS)
    assert value(ignoring, "stop.epochs_after_decision") == late
    assert [value(record, "stop.ignored") + value(record, "stop.epochs_after_decision") for record in honest] == [0, 0]
    assert value(ignoring, "waste.strict.time") == pytest.approx(late * EPOCH_SECONDS * 1e3, rel=0.15)
    assert all(value(record, "waste.strict.time") < 20 for record in honest)
    assert more(ignoring, honest, "waste.default.time") == pytest.approx(late * EPOCH_SECONDS * 1e3, rel=0.2)
    assert value(ignoring, "pruning.saved_epochs") == 0
    assert [value(record, "pruning.saved_epochs") for record in honest] == [late, late]
    metrics = {name: metric for name, metric in ignoring.metrics.items() if name not in NOT_BY_STOPS}
    assert improvements(metrics, *values(honest)) == []


@pytest.mark.slow
def test_what_wastes_seconds_costs_energy_carbon_and_money(runs: Runs) -> None:
    for worse, honest in (("SlowReports", "serial"), ("SlowStarts", "ProcessPerTrial")):
        for name in ("energy.job", "energy.per_completed_trial", "carbon.job", "cost.job", "energy.reserved_core_seconds"):
            assert value(runs[worse][0], name) > 1.3 * max(value(record, name) for record in runs[honest]), (worse, name)


@pytest.mark.slow
def test_honest_runs_are_no_better_than_each_other(runs: Runs, stopped: Runs) -> None:
    for first, second in (runs["serial"], runs["ProcessPerTrial"], stopped["serial"]):
        assert improvements(first.metrics, second.metrics) == []
        assert improvements(second.metrics, first.metrics) == []


def test_every_metric_has_a_better_direction_or_a_reason_to_have_none() -> None:
    from tuneoff.metrics.names import metric_names

    assert set(DIRECTIONS).isdisjoint(EXCLUDED)
    assert {*DIRECTIONS, *EXCLUDED} == set(metric_names())
    assert set(DIRECTIONS) >= NOT_BY_STOPS


def test_a_metric_that_is_better_beyond_its_noise_is_found() -> None:
    honest = {"time.jct": known(4000.0, "ms"), "trials.completed": known(10, "count"), "slots.busy[0]": known(3.0, "s")}
    other = {**honest, "time.jct": known(3900.0, "ms")}
    assert improvements({**honest, "time.jct": known(2801.0, "ms")}, honest) == []
    assert improvements({**honest, "time.jct": known(2600.0, "ms")}, honest, other) == ["time.jct: 2600 ms, honest 3900"]
    assert improvements({**honest, "trials.completed": known(11, "count")}, honest) == ["trials.completed: 11 count, honest 10"]
    assert improvements({**honest, "trials.completed": known(9, "count"), "slots.busy[0]": known(1, "s")}, honest) == []
