"""Given configurations and scripted stops are checked against what was trained."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from builders.specs import CURVE, make_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Budget, Objective, RunSpec
from tuneoff.record.endings import promise_flags
from tuneoff.record.run_record import AttemptRecord, EpochRecord, TrialRecord

GIVEN = ({"x": 0.1}, {"x": 0.2}, {"x": 0.3})


def spec(sampler: str = "fixed", pruner: str = "none") -> RunSpec:
    stops = {configuration_digest(GIVEN[1]): 1} if pruner == "scripted" else {}
    return make_spec(
        workload=CURVE,
        objective=Objective(metric="loss", mode="min"),
        sampler=sampler,
        pruner=pruner,
        trials=3,
        epochs=2,
        configurations=GIVEN,
        stops=stops,
    )


def trial(number: int, configuration: dict[str, float]) -> TrialRecord:
    epochs = tuple(EpochRecord(epoch=epoch, ended_ns=1, train_ns=0, validate_ns=0, metrics={}) for epoch in (1, 2))
    attempt = AttemptRecord(attempt=1, state="completed", slot=0, started_ns=0, ended_ns=1, epochs=epochs)
    digest = configuration_digest(configuration)
    return TrialRecord(trial=f"t{number}", configuration=configuration, digest=digest, state="completed", attempts=(attempt,))


HONEST = [trial(number, configuration) for number, configuration in enumerate(GIVEN)]


def names(run: RunSpec, trials: list[TrialRecord]) -> list[str]:
    return [flag.name for flag in promise_flags(run, trials)]


def test_the_given_configurations_in_any_order_raise_no_flag() -> None:
    assert names(spec(), HONEST[::-1]) == []


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([*HONEST[:2], trial(2, {"x": 0.4})], ["foreign_configurations", "missing_configurations"]),
        ([*HONEST[:2], trial(2, GIVEN[0])], ["foreign_configurations", "missing_configurations"]),
        ([*HONEST, trial(3, {"x": 0.4})], ["foreign_configurations"]),
        (HONEST[:2], ["missing_configurations"]),
    ],
)
def test_another_repeated_or_missing_configuration_is_flagged(trials: list[TrialRecord], expected: list[str]) -> None:
    assert names(spec(), trials) == expected


def test_a_sampler_that_chooses_is_not_held_to_the_list() -> None:
    assert names(spec(sampler="random"), [trial(0, {"x": 0.7})]) == []


def test_a_scripted_stop_that_did_not_happen_is_flagged() -> None:
    assert names(spec(pruner="scripted"), HONEST) == ["scripted_stop_missed"]
    stopped = [HONEST[0], replace(HONEST[1], state="pruned"), HONEST[2]]
    assert names(spec(pruner="scripted"), stopped) == []


def test_a_training_that_ended_before_its_scripted_stop_missed_none() -> None:
    later = spec(pruner="scripted")
    stops = {configuration_digest(GIVEN[1]): 2}
    later = replace(later, experiment=replace(later.experiment, stops=stops, budget=Budget(trials=3, epochs_per_trial=3)))
    assert names(later, HONEST) == ["scripted_stop_missed"]
    (attempt,) = HONEST[1].attempts
    ended = replace(HONEST[1], attempts=(msgspec.structs.replace(attempt, epochs=attempt.epochs[:1]),))
    assert names(later, [HONEST[0], ended, HONEST[2]]) == []
