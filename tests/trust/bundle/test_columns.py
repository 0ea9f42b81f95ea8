"""The columns of a reproduction, for each an honest pair and a planted difference that it must see; and the answer of all."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders.bundles import CONFIGURATIONS, CPU, VALUES, answers, metric, pair_of, record_of, spec_of, trial_of, with_trial
from tuneoff.experiment.spec import Budget, RunSpec, Strategy, Workers
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.trust.bundle.columns import (
    BOUNDS,
    ReproducedColumn,
    ReproductionAnswer,
    RunPair,
    exact_columns,
    machine_columns,
    of_columns,
    overall,
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
        "1 of 3 ended differently (t00002 completed in the bundle, t00002 failed here)",
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
        assert "need not be equal: the seed differs here; also, with 2 workers" in columns[name].why


def test_another_seed_alone_excuses_nothing() -> None:
    columns = with_other_seed(workers=1)
    assert {columns[name].answer for name in FOLLOWING} == {ReproductionAnswer.DIFFERENT}


def test_another_seed_comes_before_another_processor_and_before_timing() -> None:
    here = changed_bit(record_of(spec_of(seed=7)))
    columns = columns_of(here, numerics=(CPU,))
    assert f"need not be equal: the seed differs here; also, {CPU}" in columns["validation metrics"].why
    timed = spec_of(budget=TIMED)
    failed = PLANTED["trial states"][0](record_of(spec_of(budget=TIMED, seed=7)))
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


def test_one_in_twenty_runs_of_the_same_kind_is_outside() -> None:
    generator = random.Random(0)
    outside = 0
    for _ in range(1000):
        *theirs, ours = (generator.gauss(0.9, 0.01) for _ in range(6))
        outside += next(quality_columns("c", seeds_of(theirs), seeds_of([ours]))).answer is ReproductionAnswer.DIFFERENT
    assert 30 <= outside <= 70


def seeds_of(values: Sequence[float]) -> list[RunRecord]:
    """As `seeds`, from two records: they differ in their metrics alone."""
    base = replace(BASE, run_id="0")
    return [replace(base, metrics={"quality.validation": metric(value, "a")}) for value in values]


BASE = record_of(SPEC)


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


LONG_MS = 10_000.0  # long enough to compare, also at a tenth
ALL_BOUND = {bound.metric: metric(LONG_MS) for bound in BOUNDS}


def bound_pair(ratio: float, sentinel: float = 1.0, **more: Any) -> RunPair:
    flags = tuple(FlagRecord(name=name, text="x") for name in more.pop("flags", ()))
    bundle = record_of(SPEC, metrics=ALL_BOUND)
    here = record_of(SPEC, metrics={bound.metric: metric(LONG_MS * ratio) for bound in BOUNDS}, flags=flags)
    before = {**bundle.environment["machine_before"], "sentinel_ns": round(20_000_000 * sentinel)}
    here = replace(here, environment={**here.environment, "machine_before": before})
    return pair_of(here, bundle, **more)


def bound_answers(pair: RunPair) -> dict[str, str]:
    columns = list(machine_columns(pair))
    assert not any(column.decides for column in columns)
    assert {column.tolerance for column in columns} == {"machine"}
    return answers(columns)


def test_a_ratio_in_the_band_is_reproduced() -> None:
    for ratio in (0.81, 1.0, 1.24):
        assert set(bound_answers(bound_pair(ratio)).values()) == {"REPRODUCED"}


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.metric)
def test_a_ratio_outside_the_band_is_different_on_the_same_machine_without_other_work_alone(bound: Any) -> None:
    for ratio in (bound.band * 1.01, 0.99 / bound.band):
        assert bound_answers(bound_pair(ratio))[bound.metric] == "DIFFERENT"
        assert bound_answers(bound_pair(ratio, flags=["disturbed"]))[bound.metric] == "INCONCLUSIVE"
        assert bound_answers(bound_pair(ratio, same_machine=False))[bound.metric] == "INCONCLUSIVE"
    assert bound_answers(bound_pair(bound.band * 0.99))[bound.metric] == "REPRODUCED"


def test_a_slower_machine_is_scaled_by_its_sentinel() -> None:
    slower = bound_answers(bound_pair(3.0, sentinel=3.0, same_machine=False))
    assert (slower["time.jct"], slower["energy.cpu_seconds"]) == ("REPRODUCED", "REPRODUCED")
    assert slower["memory.peak_rss"] == "INCONCLUSIVE"  # memory does not go with speed
    same = bound_answers(bound_pair(1.0, sentinel=3.0))  # other work: no CPU seconds are lost by it
    assert (same["energy.cpu_seconds"], same["memory.peak_rss"], same["time.jct"]) == ("REPRODUCED", "REPRODUCED", "DIFFERENT")


def test_figures_of_different_meters_are_not_compared() -> None:
    bundle = record_of(SPEC, metrics={"energy.job": metric(100.0, "J", "measured", "rapl")})
    here = record_of(SPEC, metrics={"energy.job": metric(100.0, "J", "estimated", "model")})
    (column,) = (item for item in machine_columns(pair_of(here, bundle)) if item.name == "energy.job")
    assert column.answer is ReproductionAnswer.INCONCLUSIVE
    assert "another meter: estimated, model here, measured, rapl in the bundle" in column.why


def test_a_run_without_a_sentinel_is_not_called_different() -> None:
    pair = bound_pair(9.0)
    bare = replace(pair.here, environment={**pair.here.environment, "machine_before": None})
    assert set(bound_answers(replace(pair, here=bare)).values()) == {"INCONCLUSIVE"}


TIMES = ("time.jct_without_test", "time.jct", "time.deploy", "time.trial", "time.test", "overhead.per_trial")
OF_THE_RUN = ("energy.cpu_seconds", "energy.job", "carbon.job", "cost.job")
JUST_BELOW = 0.999


def column_of(name: str, theirs: float, ours: float, jct_ms: tuple[float, float] = (LONG_MS, LONG_MS)) -> ReproducedColumn:
    """Return a column on the same machine with no sign of other work."""
    bundle, here = (
        record_of(SPEC, metrics={"time.jct": metric(jct), name: metric(value)})
        for jct, value in zip(jct_ms, (theirs, ours), strict=True)
    )
    (column,) = (item for item in machine_columns(pair_of(here, bundle)) if item.name == name)
    return column


def test_every_machine_column_but_memory_has_a_floor() -> None:
    assert {bound.metric for bound in BOUNDS} == {*TIMES, *OF_THE_RUN, "memory.peak_rss"}
    memory = column_of("memory.peak_rss", 1.0, 2.0, jct_ms=(1.0, 1.0))
    assert memory.answer is ReproductionAnswer.DIFFERENT


@pytest.mark.parametrize("name", TIMES)
def test_times_that_are_both_below_half_a_second_are_too_short_to_compare(name: str) -> None:
    for theirs, ours in ((10.44, 48.88), (100.0, 500 * JUST_BELOW), (500 * JUST_BELOW, 100.0), (3.0, 3.0)):
        column = column_of(name, theirs, ours)
        assert column.answer is ReproductionAnswer.INCONCLUSIVE
        assert "too short to compare: both are below 0.5 s" in column.why
    for theirs, ours in ((100.0, 500.0), (500.0, 100.0)):  # one of both at the floor is enough
        column = column_of(name, theirs, ours)
        assert column.answer is ReproductionAnswer.DIFFERENT
        assert column.why.endswith("outside 0.5 to 2 on the same machine with no sign of other work")
    assert column_of(name, 500.0, 500.0).answer is ReproductionAnswer.REPRODUCED


@pytest.mark.parametrize("name", OF_THE_RUN)
def test_energy_and_cost_of_runs_that_are_both_below_two_seconds_are_too_short_to_compare(name: str) -> None:
    short = 2000 * JUST_BELOW
    column = column_of(name, 1.0, 9.0, jct_ms=(short, short))
    assert column.answer is ReproductionAnswer.INCONCLUSIVE
    assert "too short to compare: time.jct of both is below 2 s" in column.why
    for jct_ms in ((2000.0, short), (short, 2000.0)):
        assert column_of(name, 1.0, 9.0, jct_ms=jct_ms).answer is ReproductionAnswer.DIFFERENT
        assert column_of(name, 1.0, 1.0, jct_ms=jct_ms).answer is ReproductionAnswer.REPRODUCED


def test_energy_of_a_run_without_a_known_length_is_not_called_short() -> None:
    bundle, here = (record_of(SPEC, metrics={"energy.job": metric(value)}) for value in (1.0, 9.0))
    here = replace(here, metrics={name: value for name, value in here.metrics.items() if name != "time.jct"})
    (column,) = (item for item in machine_columns(pair_of(here, bundle)) if item.name == "energy.job")
    assert column.answer is ReproductionAnswer.DIFFERENT


def column(answer: ReproductionAnswer, **more: Any) -> ReproducedColumn:
    return ReproducedColumn(**{"name": "c", "tolerance": "exact", "where": "w", "answer": answer, "why": "why", **more})


def test_the_worst_deciding_column_is_the_answer() -> None:
    good, bad, unsure = (
        column(answer)
        for answer in (ReproductionAnswer.REPRODUCED, ReproductionAnswer.DIFFERENT, ReproductionAnswer.INCONCLUSIVE)
    )
    assert overall([good], []) == (ReproductionAnswer.REPRODUCED, "every exact and statistical column agrees")
    assert overall([good, unsure], [])[0] is ReproductionAnswer.INCONCLUSIVE
    assert overall([good, unsure, bad], []) == (ReproductionAnswer.DIFFERENT, "c differ; nothing in the table above explains it")
    assert overall([], [])[0] is ReproductionAnswer.INCONCLUSIVE
    assert of_columns([]) is ReproductionAnswer.INCONCLUSIVE


def test_columns_that_nobody_promised_and_times_do_not_decide() -> None:
    good = column(ReproductionAnswer.REPRODUCED)
    assert overall([good, column(ReproductionAnswer.INCONCLUSIVE, decides=False)], [])[0] is ReproductionAnswer.REPRODUCED
    assert (
        overall([good, column(ReproductionAnswer.DIFFERENT, tolerance="machine", decides=False)], [])[0]
        is ReproductionAnswer.REPRODUCED
    )
    assert (
        overall([column(ReproductionAnswer.REPRODUCED, tolerance="machine", decides=False)], [])[0]
        is ReproductionAnswer.INCONCLUSIVE
    )


def test_another_experiment_is_never_reproduced() -> None:
    answer, why = overall([column(ReproductionAnswer.REPRODUCED)], ["optuna is 5.1 here, 5.0 in the bundle"])
    assert answer is ReproductionAnswer.INCONCLUSIVE
    assert why == "every column agrees, but it is not the same experiment; changed: optuna is 5.1 here, 5.0 in the bundle"
    answer, why = overall([column(ReproductionAnswer.DIFFERENT)], ["seed is 7 here, 0 in the bundle"])
    assert (answer, why) == (ReproductionAnswer.DIFFERENT, "c differ; changed: seed is 7 here, 0 in the bundle")
