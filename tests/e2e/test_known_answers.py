"""Adapters that are worse in one known way: the intended metric moves by the known amount, and so does what that costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import known_answers
from command_line import write_file
from known_answers import REPORT_SECONDS
from tuneoff.experiment.accounting.resolve import DEFAULT_PRICES
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord

pytestmark = pytest.mark.slow

TRIALS, EPOCHS, EPOCH_SECONDS = 10, 10, 0.03
STOPS = {1: 2, 3: 2, 5: 9, 6: 2, 7: 2}  # index of a configuration -> epoch after which it must stop
REPEATS = 3  # of a matrix: what other programs do to one of its figures they do not do to it each time
ADDED_MS = EPOCHS * REPORT_SECONDS * 1e3  # to a trial, by slow reports

Runs = Mapping[str, Sequence[RunRecord]]


class Repeated:
    """A matrix that is run when it is asked for, and again when one run of it is no evidence."""

    def __init__(self, make: Callable[[], Runs]) -> None:
        self._make = make
        self._made: list[Runs] = []

    def show(self, holds: Callable[[Runs], bool]) -> bool:
        """Tell whether it holds in one of the repetitions."""
        for number in range(REPEATS):
            if len(self._made) == number:
                self._made.append(self._make())
            if holds(self._made[number]):
                return True
        return False

    def add(self, worse: str, name: str, expected: float, within: float) -> bool:
        """Tell whether a metric is so much larger than in the honest run that it is nearest to."""

        def holds(runs: Runs) -> bool:
            more = [value(runs[worse][0], name) - value(record, name) for record in runs["serial"]]
            return abs(min(more, key=abs) - expected) <= within

        return self.show(holds)


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
        "adapters": ["serial", "serial", *(f"known_answers:{name}" for name in adapters)],
        **changes,
    }
    file = write_file(folder / "known.yaml", content)
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


@pytest.fixture(scope="module", autouse=True)
def _importable() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(known_answers.__file__).parent))
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Repeated:
    return Repeated(lambda: compare(tmp_path_factory.mktemp("known"), ["SlowReports", "Crashing"]))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Repeated:
    stops = [{"index": index, "after_epoch": epoch} for index, epoch in STOPS.items()]
    return Repeated(lambda: compare(tmp_path_factory.mktemp("stops"), ["StopsIgnored"], pruner="scripted", stops=stops))


def value(record: RunRecord, name: str) -> float:
    metric = record.metrics[name]
    assert metric.value is not None, metric.reason_if_null
    return metric.value


@pytest.mark.parametrize(
    ("name", "expected", "within"),
    [
        ("overhead.report", ADDED_MS, 0.1 * ADDED_MS),
        ("overhead.per_trial", ADDED_MS, 0.1 * ADDED_MS),
        ("overhead.per_report", 1000 * REPORT_SECONDS, 100 * REPORT_SECONDS),
        ("overhead.further_trial", 0, 10),  # what reports add is not the trial's
        ("time.jct", TRIALS / 2 * ADDED_MS, 0.2 * TRIALS / 2 * ADDED_MS),
        ("trial_execution.mean", 0, 40),  # waiting is not the trial's
    ],
)
def test_slower_reports_are_found_where_trials_wait_in_report(runs: Repeated, name: str, expected: float, within: float) -> None:
    assert runs.add("SlowReports", name, expected, within)


@pytest.mark.parametrize(
    "name", ["energy.job", "energy.per_completed_trial", "carbon.job", "cost.job", "energy.reserved_core_seconds"]
)
def test_what_wastes_seconds_costs_energy_carbon_and_money(runs: Repeated, name: str) -> None:
    assert runs.show(
        lambda made: value(made["SlowReports"][0], name) > 1.1 * max(value(record, name) for record in made["serial"])
    )


def test_a_tenth_of_trials_that_crash_are_failures_and_wasted(runs: Repeated) -> None:
    def holds(made: Runs) -> bool:
        (crashing,) = made["Crashing"]
        assert (value(crashing, "trials.failed"), value(crashing, "trials.completed")) == (TRIALS / 10, TRIALS - TRIALS / 10)
        charged = ("framework", "workload", "infrastructure", "user")
        assert sum(value(crashing, f"failures.{who}") for who in charged) == TRIALS / 10
        assert min(value(crashing, "waste.default.energy"), value(crashing, "waste.default.cost")) > 0
        trained_ms = (EPOCHS - 1) * EPOCH_SECONDS * 1e3 * TRIALS / 10
        return trained_ms <= value(crashing, "waste.default.time") < trained_ms + 300  # until its end was seen

    assert runs.show(holds)


def test_ignored_stops_are_counted_with_what_they_cost(stopped: Repeated) -> None:
    late = sum(EPOCHS - epoch for epoch in STOPS.values())
    late_ms = late * EPOCH_SECONDS * 1e3

    def counted(record: RunRecord) -> tuple[float, ...]:
        names = ("stop.ignored", "stop.epochs_after_decision", "pruning.saved_epochs")
        return tuple(value(record, name) for name in names)

    def holds(made: Runs) -> bool:
        (ignoring,), honest = made["StopsIgnored"], made["serial"]
        assert counted(ignoring) == (len(STOPS), late, 0)
        assert [counted(record) for record in honest] == [(0, 0, late)] * 2
        busy = "stop.busy_after_decision"
        return abs(value(ignoring, busy) - late_ms) <= 0.15 * late_ms and all(value(record, busy) < 20 for record in honest)

    assert stopped.show(holds)
    assert stopped.add("StopsIgnored", "waste.default.time", late_ms, 0.2 * late_ms)
