"""Items per second with the first epochs dropped, shares of phases, and whether a metric got better beyond its noise."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders.event_logs import run_b
from builders.made_results import Entry, results, steady
from builders.made_runs import made_run, made_spec
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.warnings import results_warnings
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.inside import item_rate, phase_shares
from tuneoff.measure.progress import has_progress
from tuneoff.record.run_record import EpochRecord, RunRecord, TrialRecord
from tuneoff.record.store import selected_executions
from tuneoff.tell.frames.tables import trial_rows

HISTORIES = 400


def test_the_rate_is_of_all_items_over_all_seconds_without_the_first_epoch() -> None:
    rate = item_rate(run_b().trials[0])  # 100, 200, 300, 400 items, 4 s each
    assert rate is not None
    assert (rate.rates, rate.dropped, rate.mean) == ([50.0, 75.0, 100.0], 1, 75.0)
    assert rate.deviation == statistics.stdev(rate.rates)
    assert item_rate(run_b().trials[2]) is None


def test_a_single_epoch_is_kept_and_a_restored_one_is_no_repetition() -> None:
    (attempt,) = run_b().trials[0].attempts
    one = replace(run_b().trials[0], attempts=(msgspec.structs.replace(attempt, epochs=attempt.epochs[:1]),))
    rate = item_rate(one)
    assert rate is not None
    assert (rate.rates, rate.dropped, rate.deviation) == ([25.0], 0, None)
    restored = tuple(
        msgspec.structs.replace(epoch, restored=True, items=None, train_ns=0, phases=None) for epoch in attempt.epochs[:2]
    )
    again = replace(one, attempts=(*one.attempts, msgspec.structs.replace(attempt, epochs=(*restored, *attempt.epochs[2:]))))
    rate = item_rate(again)
    assert rate is not None
    assert (rate.items, rate.dropped) == ((100, 400), 1)


def test_metrics_and_columns_say_the_same() -> None:
    run = with_metrics(run_b())
    row, _, silent = trial_rows(run, True, {})
    assert (run.metrics["items.per_second"].value, run.metrics["items.per_second"].n_samples) == (75.0, 3)
    assert run.metrics["items.variation"].value == pytest.approx(100 / 3)
    names = ("items_per_second", "items_per_second_min", "items_per_second_max", "items_repetitions", "items_dropped")
    assert [row[name] for name in names] == [75.0, 50.0, 100.0, 3, 1]
    assert [silent[name] for name in (*names, "phases")] == [None] * 6
    shares = phase_shares(run.trials)
    assert list(shares) == ["forward", "other"]  # a usual one comes first
    assert shares["forward"] == pytest.approx(4 / 18)  # 18 s of 20 were busy
    assert run.metrics["phase.other"].value == pytest.approx(100 * shares["other"])


@pytest.mark.parametrize("told", [{"items": -1}, {"phases": {"a": -1}}, {"phases": {"a": 2, "b": 2}}])
def test_what_cannot_be_is_refused_where_a_record_is_made(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must hold"):
        EpochRecord(epoch=1, ended_ns=9, train_ns=2, validate_ns=1, metrics={}, **told)


def trials(histories: Sequence[Sequence[float]]) -> tuple[TrialRecord, ...]:
    curves = [[{"validation_accuracy": value} for value in history] for history in histories]
    return made_run(made_spec(), curves).trials


def flagged(learned: Callable[[int, int], float], epochs: int, count: int) -> float:
    """Return the share of simulated runs of `count` trials in which no progress is seen; the noise has a deviation of 1."""
    chance, objective = random.Random(f"{epochs} {count}"), made_spec().experiment.objective
    draws = (
        trials([[learned(epoch, epochs) + chance.gauss(0, 1) for epoch in range(epochs)] for _ in range(count)])
        for _ in range(HISTORIES)
    )
    return sum(has_progress(drawn, objective) is False for drawn in draws) / HISTORIES


LEARNED: dict[str, Callable[[int, int], float]] = {  # 3 deviations of the noise in all, epochs from 0
    "steady": lambda epoch, epochs: 3 * epoch / (epochs - 1),
    "all in the second epoch": lambda epoch, epochs: 3 * min(epoch, 1),
    "as 1 / epoch": lambda epoch, epochs: 3 * (1 - 1 / (epoch + 1)),
}


@pytest.mark.parametrize("epochs", [5, 40])
@pytest.mark.parametrize("learned", LEARNED)
def test_few_runs_that_learn_are_called_without_progress(learned: str, epochs: int) -> None:
    assert flagged(LEARNED[learned], epochs, 6) <= 0.03


@pytest.mark.parametrize(("epochs", "count"), [(5, 6), (40, 1)])
def test_of_runs_that_do_not_learn_95_percent_are_found(epochs: int, count: int) -> None:
    assert flagged(lambda epoch, epochs: 0.0, epochs, count) == pytest.approx(0.95, abs=0.035)


@pytest.mark.parametrize(
    ("histories", "mode", "expected"),
    [
        ([[1.0] * 30], "max", False),  # nothing changes at all
        ([list(range(30))], "max", True),
        ([list(range(30))], "min", False),  # it gets worse
        ([list(range(24))], "max", None),  # one trial of so few epochs tells nothing ...
        ([[1.0, 2.0, 3.0]] * 12, "max", True),  # ... nor does its half, but a dozen do together
        ([], "max", None),
    ],
)
def test_progress_of_given_histories(histories: list[list[float]], mode: Any, expected: bool | None) -> None:
    assert has_progress(trials(histories), replace(made_spec().experiment.objective, mode=mode)) is expected


@pytest.mark.parametrize(
    ("history", "environment", "text"),
    [
        ([0.5] * 5, {}, "No progress in 1 run (serial: 1): validation_accuracy did not get better from epoch to epoch"),
        ([0.5] * 5, {"workload": {"training_algorithm": "none"}}, None),  # as `null`: it trains nothing
        ([0.1, 0.2, 0.3, 0.4, 0.5], {}, None),
    ],
)
def test_a_run_without_progress_is_warned_of(history: list[float], environment: dict[str, Any], text: str | None) -> None:
    made = results([Entry("serial", steady(), environment=environment)], seeds=range(3))
    first = replace(made.records[0], trials=trials([history] * 6))
    records: tuple[RunRecord, ...] = (first, *made.records[1:])
    changed = replace(made, records=records, selected=selected_executions(records))
    raised = {warning.kind: warning for warning in results_warnings(answers(changed), {"serial": "serial"})}
    assert ("no_progress" in raised) is (text is not None)
    if text is not None:
        assert raised["no_progress"].short.startswith(text)
        assert raised["no_progress"].runs == (first.run_id,)
