"""Of the columns of a reproduction what the bundles of tests/corpus do not show: excuses, attempts, and the spread of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders.bundles import CONFIGURATIONS, CPU, VALUES, answers, metric, pair_of, record_of, spec_of, trial_of, with_trial
from tuneoff.experiment.spec import Budget, RunSpec, Strategy, Workers
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.bundle.columns import (
    ReproducedColumn,
    ReproductionAnswer,
    exact_columns,
    quality_columns,
    value_columns,
)

SPEC = spec_of()


def columns_of(
    here: RunRecord, bundle: RunRecord | None = None, spec: RunSpec = SPEC, numerics: tuple[str, ...] = ()
) -> dict[str, ReproducedColumn]:
    return {column.name: column for column in exact_columns(pair_of(here, bundle, spec, numerics=numerics))}


def answers_of(here: RunRecord, bundle: RunRecord | None = None) -> dict[str, str]:
    return answers(columns_of(here, bundle).values())


def other_configuration(record: RunRecord) -> RunRecord:
    return with_trial(record, 2, digest="0" * 16)


def failed_last(record: RunRecord) -> RunRecord:
    return with_trial(record, 2, state="failed", cause="x", value=None, value_epoch=None)


def changed_bit(record: RunRecord) -> RunRecord:
    """One value of one epoch, of a trial that is not the best, by one bit."""
    trial = trial_of(SPEC, 0, CONFIGURATIONS[0], [0.5 + 2**-53, 0.6])
    return with_trial(record, 0, attempts=trial.attempts)


def test_a_training_that_ends_by_itself_ends_at_the_same_epoch() -> None:
    def shorter(record: RunRecord) -> RunRecord:
        (attempt,) = record.trials[2].attempts
        return with_trial(record, 2, attempts=(msgspec.structs.replace(attempt, epochs=attempt.epochs[:1]),))

    scripted = spec_of(pruner=Strategy(name="scripted"))
    here = shorter(record_of(scripted))
    assert columns_of(here, spec=scripted)["trial states"].answer is ReproductionAnswer.DIFFERENT


def test_the_processor_excuses_no_other_configurations() -> None:
    here = other_configuration(record_of(SPEC))
    assert columns_of(here, numerics=(CPU,))["configurations"].answer is ReproductionAnswer.DIFFERENT


TIMED = Budget(trials=3, epochs_per_trial=2, wall_clock_seconds=1.0)
FIXED, GRID, TPE = (Strategy(name=name) for name in ("fixed", "grid", "tpe"))
SEEDS: list[tuple[dict[str, Any], tuple[str, ...], str | None]] = [
    ({}, (), None),
    ({"sampler": FIXED, "workers": Workers(count=4)}, (), None),
    ({"sampler": GRID, "workers": Workers(count=4)}, (), None),
    ({"workers": Workers(count=2)}, (), "with 2 workers timing decides"),
    ({"sampler": TPE}, (), None),
    ({"sampler": TPE}, (CPU,), f"sampler tpe follows the values, and {CPU}"),
    ({"sampler": TPE, "pruner": Strategy(name="asha")}, (), "sampler and pruner follow values"),
    ({"budget": TIMED}, (), "the budget is a time"),
    ({"sampler": FIXED, "budget": TIMED}, (), "the budget is a time"),
]


@pytest.mark.parametrize(("fields", "numerics", "excuse"), SEEDS)
def test_a_seed_must_give_the_same_configurations_unless_timing_decides(
    fields: dict[str, Any], numerics: tuple[str, ...], excuse: str | None
) -> None:
    spec = spec_of(**fields)
    columns = columns_of(other_configuration(record_of(spec)), spec=spec, numerics=numerics)
    found = columns["configurations"]
    assert (found.answer, found.decides) == (
        (ReproductionAnswer.DIFFERENT, True) if excuse is None else (ReproductionAnswer.INCONCLUSIVE, False)
    )
    assert excuse is None or f"need not be equal: {excuse}" in found.why  # and no other seed, for it is the same
    # what was trained in both is the same work, whoever asked for it
    assert columns["validation metrics"].answer is ReproductionAnswer.REPRODUCED


@pytest.mark.parametrize(
    ("charged", "answer"), [("infrastructure", "INCONCLUSIVE"), ("user", "INCONCLUSIVE"), (None, "DIFFERENT")]
)
def test_a_run_that_fails_here_is_different_unless_the_machine_is_charged(charged: Any, answer: str) -> None:
    columns = columns_of(replace(record_of(SPEC), status="failed", reason="x", charged=charged))
    assert [(column.name, column.answer.value, column.decides) for column in columns.values()] == [("status", answer, True)]


def retried(record: RunRecord) -> RunRecord:
    """The best trial's first attempt was lost after one epoch, as a killed process leaves it; the second one is whole."""
    whole = record.trials[1].attempts[0]
    lost = msgspec.structs.replace(whole, state="lost", epochs=whole.epochs[:1])
    return with_trial(record, 1, attempts=(lost, msgspec.structs.replace(whole, attempt=2)))


def test_a_retried_trial_is_reproduced_by_one_that_was_not() -> None:
    assert answers_of(record_of(SPEC), retried(record_of(SPEC))) == answers_of(record_of(SPEC))


def test_an_epoch_that_the_last_attempt_lacks_is_still_a_difference() -> None:
    here = record_of(SPEC)
    short = msgspec.structs.replace(here.trials[0].attempts[0], epochs=here.trials[0].attempts[0].epochs[:1])
    assert answers_of(with_trial(here, 0, attempts=(short,)), retried(record_of(SPEC)))["trial states"] == "DIFFERENT"


def test_epochs_that_a_lost_attempt_took_from_a_budget_of_epochs_are_an_excuse() -> None:
    spec = spec_of(sampler=Strategy(name="fixed"), budget=Budget(trials=3, epochs_per_trial=2, epochs_total=6))
    here = other_configuration(record_of(spec))
    for bundle, answer in ((record_of(spec), "DIFFERENT"), (retried(record_of(spec)), "INCONCLUSIVE")):
        assert columns_of(here, bundle, spec)["configurations"].answer.value == answer


FOLLOWING = ("configurations", "best configuration", "checkpoint")  # other ones of another seed; scores may be equal


def with_other_seed(workers: int) -> dict[str, ReproducedColumn]:
    spec, other = (spec_of(workers=Workers(count=workers), seed=seed) for seed in (0, 7))
    here = record_of(other, configurations=[{"x": 0.7}, {"x": 0.8}, {"x": 0.9}])
    return columns_of(here, record_of(spec), spec)


def test_another_seed_is_the_first_reason_where_timing_is_one() -> None:
    columns = with_other_seed(workers=2)
    for name in FOLLOWING:
        assert columns[name].answer is ReproductionAnswer.INCONCLUSIVE
        assert "need not be equal: the seed differs here; also, with 2 workers" in columns[name].why


def test_another_seed_alone_excuses_nothing() -> None:
    columns = with_other_seed(workers=1)
    assert {columns[name].answer for name in FOLLOWING} == {ReproductionAnswer.DIFFERENT}


def test_another_seed_comes_before_another_processor_and_before_timing() -> None:
    here = changed_bit(record_of(spec_of(seed=7)))
    columns = columns_of(here, numerics=(CPU,))
    assert f"need not be equal: the seed differs here; also, {CPU}" in columns["validation metrics"].why
    timed = spec_of(budget=TIMED)
    failed = failed_last(record_of(spec_of(budget=TIMED, seed=7)))
    columns = columns_of(failed, record_of(timed), timed)
    assert "the seed differs here; also, the budget is a time" in columns["trial states"].why


def seeds(values: Sequence[float], first: int = 0) -> list[RunRecord]:
    """Return runs of one cell whose seeds reach these qualities."""
    metrics = [{"quality.validation": metric(value, "a"), "quality.test": metric(value, "a")} for value in values]
    return [record_of(spec_of(seed=first + place), metrics=found) for place, found in enumerate(metrics)]


QUALITY: list[tuple[str, list[float], float, str]] = [
    ("equal", [0.9, 0.8], 0.9, "REPRODUCED"),
    ("two seeds tell no spread", [0.9, 0.8], 0.85, "INCONCLUSIVE"),
    ("three seeds, inside", [0.90, 0.91, 0.92], 0.915, "INCONCLUSIVE"),
    ("three seeds, outside", [0.90, 0.91, 0.92], 0.80, "DIFFERENT"),
    ("five seeds, inside", [0.90, 0.91, 0.92, 0.93, 0.94], 0.925, "REPRODUCED"),
    ("five seeds, just inside", [0.90, 0.91, 0.92, 0.93, 0.94], 0.968, "REPRODUCED"),
    ("five seeds, just outside", [0.90, 0.91, 0.92, 0.93, 0.94], 0.9681 + 0.0001, "DIFFERENT"),
    ("no spread at all", [0.5] * 5, 0.51, "DIFFERENT"),
    ("no spread in few", [0.5] * 4, 0.51, "INCONCLUSIVE"),
    ("rounding alone in few", [0.3, 0.1 + 0.2, 0.3], 0.31, "INCONCLUSIVE"),
]


@pytest.mark.parametrize(("case", "theirs", "ours", "answer"), QUALITY, ids=[case[0] for case in QUALITY])
def test_quality_is_held_to_the_spread_of_the_bundles_seeds(case: str, theirs: list[float], ours: float, answer: str) -> None:
    columns = list(quality_columns("a cell", seeds(theirs), seeds([ours])))
    assert answers(columns) == {"quality.validation": answer, "quality.test": answer}
    assert all(column.decides for column in columns)


def test_the_interval_is_that_of_the_mean_of_further_runs() -> None:
    # n = 5, m = 0.92, s = 0.0158114, t(4) = 2.7764: 0.048089 for one run, 0.029447 for four
    one = next(quality_columns("c", seeds([0.90, 0.91, 0.92, 0.93, 0.94]), seeds([0.925])))
    assert "in [0.871911, 0.968089], where 95 % of such runs lie by the bundle's 5 seeds" in one.why
    four = next(quality_columns("c", seeds([0.90, 0.91, 0.92, 0.93, 0.94]), seeds([0.95] * 4)))
    assert four.answer is ReproductionAnswer.DIFFERENT


def shifted(by: Sequence[float]) -> RunRecord:
    found = [[value + shift for value in values] for values, shift in zip(VALUES, by, strict=True)]
    return record_of(SPEC, values=found)


@pytest.mark.parametrize(
    ("by", "answer"),
    [
        ((1e-9, -1e-9, 2e-9), "REPRODUCED"),
        ((0.5, 0.5001, 0.5), "DIFFERENT"),
        ((0.3, -0.3, 0.0), "INCONCLUSIVE"),
        ((0.5, 0.5, 0.5), "INCONCLUSIVE"),  # the same gap but for its rounding tells no spread
    ],
)
def test_values_of_equal_configurations_are_held_to_a_margin_on_another_processor(by: Sequence[float], answer: str) -> None:
    (column,) = value_columns(pair_of(shifted(by), numerics=(CPU,)))
    assert (column.answer.value, column.tolerance, column.decides) == (answer, "statistical", True)


def test_equal_values_and_unexcused_ones_have_no_such_column() -> None:
    assert not list(value_columns(pair_of(record_of(SPEC), numerics=(CPU,))))
    assert not list(value_columns(pair_of(shifted((0.1, 0.1, 0.1)))))
