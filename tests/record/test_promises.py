"""Given configurations and scripted stops are checked against what was trained."""

from __future__ import annotations

import pytest

from builders.specs import CURVE, make_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Objective, RunSpec
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
