from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders.event_logs import example_a
from builders.made_runs import planned, results_of
from tuneoff.experiment.spec import Strategy
from tuneoff.judge.stats.location import middle
from tuneoff.record.derive import derive
from tuneoff.record.run_record import AttemptRecord, RunRecord, TrialRecord
from tuneoff.tell.report.interference import interference, interference_json, interference_lines

Make = Callable[..., RunRecord]


@pytest.fixture(scope="module")
def make() -> Make:
    """Make runs of example A's trials (two completed, 100 s and 60 s long) that take `factor` times as long."""
    log, base = example_a()

    def make(
        adapter: str, *, factor: int = 1, cpu: float = 0.5, seed: int = 0, sampler: str = "fixed", **changes: Any
    ) -> RunRecord:
        experiment = replace(base.experiment, sampler=Strategy(name=sampler))
        spec = replace(base, adapter=adapter, seed=seed, experiment=experiment)
        run = derive(log.pairs(), spec)

        def longer(attempt: AttemptRecord) -> AttemptRecord:
            start, end = attempt.started_ns or 0, attempt.ended_ns or 0
            epochs = tuple(
                msgspec.structs.replace(epoch, ended_ns=start + epoch.epoch, reported_ns=start + epoch.epoch)
                for epoch in attempt.epochs
            )
            used = round(cpu * (end - start))
            return msgspec.structs.replace(attempt, ended_ns=start + factor * (end - start), cpu_ns=used, epochs=epochs)

        trials = tuple(replace(trial, attempts=tuple(map(longer, trial.attempts))) for trial in run.trials)
        return replace(run, **{"trials": trials, "execution_id": f"{spec.run_id}-1", "status": "done", "reason": None, **changes})

    return make


def with_other_metrics(run: RunRecord, place: int) -> RunRecord:
    """Return the run with another value in the last epoch of one trial."""

    def other(trial: TrialRecord) -> TrialRecord:
        (attempt,) = trial.attempts
        *most, last = attempt.epochs
        last = msgspec.structs.replace(last, metrics={"validation_accuracy": 0.123})
        return replace(trial, attempts=(msgspec.structs.replace(attempt, epochs=(*most, last)),))

    return replace(run, trials=tuple(other(trial) if index == place else trial for index, trial in enumerate(run.trials)))


def test_ratios_are_over_the_same_configuration_in_the_plain_pool(make: Make) -> None:
    (found,) = interference(results_of([make("serial"), make("ray-tune", factor=2, cpu=0.75)]))
    assert (found.label, found.pairs, found.unequal, found.reason) == ("ray-tune", 2, 0, None)
    assert list(found.wall) == [2, 2]
    assert middle(found.cpu) == pytest.approx(1.5)
    (title, line) = interference_lines([found])
    assert "sampler fixed" in title
    assert line == "  ray-tune: busy time 2.00 (2.00–2.00), CPU time 1.50 (1.50–1.50), 2 pairs"


def test_as_json_a_ratio_has_its_unit_kind_and_pairs_or_the_reason_of_its_absence(make: Make) -> None:
    runs = [make("serial"), make("x", factor=2), make("katib", emulated=True)]
    plan = planned(runs)
    emulated, known = sorted(interference_json(interference(results_of(runs, plan))), key=lambda one: one["label"])
    assert (known["label"], known["emulated"], known["unequal"]) == ("x", False, 0)
    wall = known["busy_wall"]
    assert (wall["value"], wall["low"], wall["high"], wall["n_samples"]) == (2, 2, 2, 2)
    assert (wall["unit"], wall["kind"], wall["reason_if_null"]) == ("ratio", "derived", None)
    for ratio in (emulated["busy_wall"], emulated["busy_cpu"]):
        assert (ratio["value"], ratio["reason_if_null"]) == (None, "emulated, so in no comparison")
    assert json.dumps([emulated, known], allow_nan=False)


def test_pairs_are_of_one_seed(make: Make) -> None:
    runs = [make("serial", seed=0), make("serial", seed=1, factor=4), make("x", seed=0, factor=2), make("x", seed=1, factor=4)]
    (found,) = interference(results_of(runs))
    assert (sorted(found.wall), found.pairs) == ([1, 1, 2, 2], 4)


def test_work_whose_metrics_differ_is_in_no_pair(make: Make) -> None:
    (found,) = interference(results_of([make("serial"), with_other_metrics(make("x", factor=2), 0)]))
    assert (found.pairs, found.unequal) == (1, 1)
    assert interference_lines([found])[1].endswith("1 pair; 1 more differ in their metrics")
    both = with_other_metrics(with_other_metrics(make("x"), 0), 1)
    (found,) = interference(results_of([make("serial"), both]))
    assert not found.wall
    assert found.reason == "the metrics of all 2 pairs differ: it is not the same work"
    assert interference_lines([found])[1] == f"  x: – ({found.reason})"


def test_without_the_pool_it_is_null_with_its_reason(make: Make) -> None:
    (found,) = interference(results_of([make("x"), make("serial", status="failed", reason="boom")]))
    assert [*found.wall, *found.cpu] == []
    assert "no run of serial" in (found.reason or "")


def test_there_is_none_of_other_samplers_or_of_the_pool_alone(make: Make) -> None:
    assert interference(results_of([make("serial", sampler="random"), make("x", sampler="random")])) == []
    assert interference(results_of([make("serial")])) == []
    assert interference_lines([]) == []


def test_a_run_without_cpu_readings_has_no_ratio_of_cpu(make: Make) -> None:
    run = make("x")
    trials = tuple(
        replace(trial, attempts=tuple(msgspec.structs.replace(one, cpu_ns=None) for one in trial.attempts))
        for trial in run.trials
    )
    (found,) = interference(results_of([make("serial"), replace(run, trials=trials)]))
    assert not found.cpu
    assert "CPU time –" in interference_lines([found])[1]


def test_emulated_rows_are_labelled_and_compared_with_nothing(make: Make) -> None:
    runs = [make("serial"), make("katib", emulated=True)]
    plan = planned(runs)
    (found,) = interference(results_of(runs, plan))
    assert found.emulated
    assert not found.wall
    assert interference_lines([found])[1] == "  katib@local (emulated): – (emulated, so in no comparison)"


def test_adapters_come_in_the_order_of_the_plan(make: Make) -> None:
    runs = [make("a"), make("b"), make("serial")]
    for order in (runs, runs[::-1]):
        plan = planned(order)
        names = [run.run_spec().adapter for run in order if run.run_spec().adapter != "serial"]
        assert [one.label for one in interference(results_of(runs, plan))] == names
