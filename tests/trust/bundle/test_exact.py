"""The exact columns: for each an honest pair, and a planted difference that it must see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders.bundles import CONFIGURATIONS, CPU, VALUES, answers, metric, pair_of, record_of, spec_of, trial_of, with_trial
from tuneoff.experiment.spec import Budget, RunSpec, Strategy, Workers
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.bundle.columns import ReproducedColumn, ReproductionAnswer, exact_columns, overall

SPEC = spec_of()


def columns_of(
    here: RunRecord, bundle: RunRecord | None = None, spec: RunSpec = SPEC, numerics: tuple[str, ...] = ()
) -> dict[str, ReproducedColumn]:
    return {column.name: column for column in exact_columns(pair_of(here, bundle, spec, numerics=numerics))}


def answers_of(here: RunRecord, bundle: RunRecord | None = None) -> dict[str, str]:
    return answers(columns_of(here, bundle).values())


EXACT = ("status", "configurations", "trial states", "validation metrics", "best configuration", "test scores", "checkpoint")


def test_the_same_run_is_reproduced_in_every_exact_column() -> None:
    assert list(answers_of(record_of(SPEC)).items()) == [(name, "REPRODUCED") for name in EXACT]
    assert {column.decides for column in columns_of(record_of(SPEC)).values()} == {True}


def test_the_order_of_trials_and_times_change_nothing_exact() -> None:
    turned = record_of(SPEC, configurations=CONFIGURATIONS[::-1], values=VALUES[::-1], metrics={"time.jct": metric(9e9)})
    assert set(answers_of(turned).values()) == {"REPRODUCED"}


def changed_scores(record: RunRecord) -> RunRecord:
    assert record.test is not None
    return replace(record, test=replace(record.test, scores={"test_accuracy": 0.8899999}))


def changed_checkpoint(record: RunRecord) -> RunRecord:
    assert record.test is not None
    return replace(record, test=replace(record.test, checkpoint_sha256="0" * 64))


def changed_bit(record: RunRecord) -> RunRecord:
    """One value of one epoch, of a trial that is not the best, by one bit."""
    trial = trial_of(SPEC, 0, CONFIGURATIONS[0], [0.5 + 2**-53, 0.6])
    return with_trial(record, 0, attempts=trial.attempts)


def other_best(record: RunRecord) -> RunRecord:
    assert record.best is not None
    return replace(record, best=replace(record.best, trial="t00000"))


PLANTED: dict[str, tuple[Callable[[RunRecord], RunRecord], str]] = {
    "configurations": (
        lambda record: with_trial(record, 2, digest="0" * 16),
        "2 of 3 are the same, 3 were trained here",
    ),
    "trial states": (
        lambda record: with_trial(record, 2, state="failed", cause="x", value=None, value_epoch=None),
        "1 of 3 ended otherwise (t00002 completed in the bundle, t00002 failed here)",
    ),
    "validation metrics": (
        changed_bit,
        "1 of 3 configurations have other metrics, validation_accuracy by up to 1.11e-16",
    ),
    "best configuration": (other_best, "0.6 here, 0.9 in the bundle"),
    "test scores": (changed_scores, "test_accuracy 0.8899999 here, 0.89 in the bundle"),
    "checkpoint": (changed_checkpoint, "SHA-256 000000000000 here, "),
    "status": (lambda record: replace(record, status="failed", reason="boom", charged="framework"), "failed here: boom"),
}


@pytest.mark.parametrize("column", PLANTED)
def test_a_planted_difference_is_found_in_its_exact_column(column: str) -> None:
    plant, why = PLANTED[column]
    columns = columns_of(plant(record_of(SPEC)))
    found = answers(columns.values())
    assert [name for name, answer in found.items() if answer != "REPRODUCED"] == [column]
    assert found[column] == "DIFFERENT"
    assert why in columns[column].why
    assert overall(list(columns.values()), [])[0] is ReproductionAnswer.DIFFERENT


def test_a_training_that_ends_by_itself_ends_at_the_same_epoch() -> None:
    def shorter(record: RunRecord) -> RunRecord:
        (attempt,) = record.trials[2].attempts
        return with_trial(record, 2, attempts=(msgspec.structs.replace(attempt, epochs=attempt.epochs[:1]),))

    scripted = spec_of(pruner=Strategy(name="scripted"))
    here = shorter(record_of(scripted))
    assert columns_of(here, spec=scripted)["trial states"].answer is ReproductionAnswer.DIFFERENT


def test_every_exact_column_has_its_planted_difference() -> None:
    assert set(PLANTED) == set(EXACT)


@pytest.mark.parametrize("column", ["validation metrics", "best configuration", "test scores", "checkpoint"])
@pytest.mark.parametrize("by", ["processor", "accelerator"])
def test_bits_need_not_be_equal_on_another_processor_or_an_accelerator(column: str, by: str) -> None:
    here = PLANTED[column][0](record_of(SPEC))
    numerics: tuple[str, ...] = (CPU,)
    if by == "accelerator":
        trial = here.trials[1]
        here = with_trial(here, 1, attempts=(msgspec.structs.replace(trial.attempts[0], device="cuda:H"),))
        numerics = ()
    found = columns_of(here, numerics=numerics)[column]
    assert (found.answer, found.decides) == (ReproductionAnswer.INCONCLUSIVE, False)
    assert ("need not be equal: " + (CPU if by == "processor" else "trained on cuda:H")) in found.why


def test_the_processor_excuses_no_other_configurations() -> None:
    here = PLANTED["configurations"][0](record_of(SPEC))
    assert columns_of(here, numerics=(CPU,))["configurations"].answer is ReproductionAnswer.DIFFERENT


TIMED = Budget(trials=3, epochs_per_trial=2, wall_clock_seconds=1.0)
FIXED, GRID, TPE = (Strategy(name=name) for name in ("fixed", "grid", "tpe"))
SEEDS: list[tuple[dict[str, Any], tuple[str, ...], str | None]] = [
    ({}, (), None),
    ({"sampler": FIXED, "workers": Workers(count=4)}, (), None),
    ({"sampler": GRID, "workers": Workers(count=4)}, (), None),
    ({"workers": Workers(count=2)}, (), "with 2 workers their timing decides"),
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
    columns = columns_of(PLANTED["configurations"][0](record_of(spec)), spec=spec, numerics=numerics)
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


def test_nothing_in_common_is_inconclusive_and_nothing_equal_is_claimed() -> None:
    here = record_of(SPEC, configurations=[{"x": 0.7}, {"x": 0.8}, {"x": 0.9}])
    found = answers_of(here)
    assert (found["configurations"], found["validation metrics"]) == ("DIFFERENT", "INCONCLUSIVE")
    assert "trial states" not in found


def retried(record: RunRecord) -> RunRecord:
    """The best trial's first attempt was lost after one epoch, as a killed process leaves it; the second one is whole."""
    whole = record.trials[1].attempts[0]
    lost = msgspec.structs.replace(whole, state="lost", epochs=whole.epochs[:1])
    return with_trial(record, 1, attempts=(lost, msgspec.structs.replace(whole, attempt=2)))


def test_a_retried_trial_is_reproduced_by_one_that_was_not() -> None:
    assert answers_of(record_of(SPEC), retried(record_of(SPEC))) == dict.fromkeys(EXACT, "REPRODUCED")


def test_an_epoch_that_the_last_attempt_lacks_is_still_a_difference() -> None:
    here = record_of(SPEC)
    short = msgspec.structs.replace(here.trials[0].attempts[0], epochs=here.trials[0].attempts[0].epochs[:1])
    assert answers_of(with_trial(here, 0, attempts=(short,)), retried(record_of(SPEC)))["trial states"] == "DIFFERENT"


def test_epochs_that_a_lost_attempt_took_from_a_budget_of_epochs_are_an_excuse() -> None:
    spec = spec_of(sampler=Strategy(name="fixed"), budget=Budget(trials=3, epochs_per_trial=2, epochs_total=6))
    here = PLANTED["configurations"][0](record_of(spec))
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
        assert "need not be equal: the seed is another one here; besides, with 2 workers" in columns[name].why


def test_another_seed_alone_excuses_nothing() -> None:
    columns = with_other_seed(workers=1)
    assert {columns[name].answer for name in FOLLOWING} == {ReproductionAnswer.DIFFERENT}


def test_another_seed_comes_before_another_processor_and_before_timing() -> None:
    here = changed_bit(record_of(spec_of(seed=7)))
    columns = columns_of(here, numerics=(CPU,))
    assert f"need not be equal: the seed is another one here; besides, {CPU}" in columns["validation metrics"].why
    timed = spec_of(budget=TIMED)
    failed = PLANTED["trial states"][0](record_of(spec_of(budget=TIMED, seed=7)))
    columns = columns_of(failed, record_of(timed), timed)
    assert "the seed is another one here; besides, the budget is a time" in columns["trial states"].why
