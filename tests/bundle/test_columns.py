"""The comparison rules: for every column an honest pair, and a planted difference that it must see."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from bundles import CONFIGURATIONS, VALUES, metric, record_of, spec_of, trial_of, with_trial
from tuneoff.bundle.exact import Pair, exact_columns
from tuneoff.bundle.machine_bound import BOUNDS, machine_columns
from tuneoff.bundle.statistical import quality_columns, t_quantile, value_columns
from tuneoff.bundle.verdict import Answer, Column, of_columns, overall
from tuneoff.experiment.spec import Budget, RunSpec, Strategy, Workers
from tuneoff.records.model import FlagRecord, RunRecord

SPEC = spec_of()
CPU = "CPU is A here, B in the bundle"
EXACT = ("status", "configurations", "trial states", "validation metrics", "best configuration", "test scores", "checkpoint")


def pair_of(here: RunRecord, bundle: RunRecord | None = None, spec: RunSpec = SPEC, **more: Any) -> Pair:
    sampler = spec.experiment.sampler.name
    return Pair(where="a run", spec=spec, sampler=sampler, bundle=bundle or record_of(spec), here=here, **more)


def answers(columns: Sequence[Column]) -> dict[str, str]:
    return {column.name: column.answer.value for column in columns}


def test_the_same_run_is_reproduced_in_every_exact_column() -> None:
    columns = list(exact_columns(pair_of(record_of(SPEC))))
    assert answers(columns) == dict.fromkeys(EXACT, "REPRODUCED")
    assert {column.decides for column in columns} == {True}


def test_the_order_of_trials_and_times_change_nothing_exact() -> None:
    turned = record_of(SPEC, configurations=CONFIGURATIONS[::-1], values=VALUES[::-1], metrics={"time.jct": metric(9e9)})
    assert set(answers(list(exact_columns(pair_of(turned)))).values()) == {"REPRODUCED"}


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
    columns = list(exact_columns(pair_of(plant(record_of(SPEC)))))
    found = answers(columns)
    assert [name for name, answer in found.items() if answer != "REPRODUCED"] == [column]
    assert found[column] == "DIFFERENT"
    assert why in next(item.why for item in columns if item.name == column)
    assert overall(columns, [])[0] is Answer.DIFFERENT


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
    columns = list(exact_columns(pair_of(here, numerics=numerics)))
    found = next(item for item in columns if item.name == column)
    assert (found.answer, found.decides) == (Answer.INCONCLUSIVE, False)
    assert ("need not be equal: " + (CPU if by == "processor" else "trained on cuda:H")) in found.why


def test_the_processor_excuses_no_other_configurations() -> None:
    here = PLANTED["configurations"][0](record_of(SPEC))
    assert answers(list(exact_columns(pair_of(here, numerics=(CPU,)))))["configurations"] == "DIFFERENT"


SEEDS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"sampler": Strategy(name="fixed"), "workers": Workers(count=4)}, None),
    ({"sampler": Strategy(name="grid"), "workers": Workers(count=4)}, None),
    ({"workers": Workers(count=2)}, "with 2 workers their timing decides"),
    ({"sampler": Strategy(name="tpe")}, None),
    ({"sampler": Strategy(name="tpe"), "pruner": Strategy(name="asha")}, "sampler and pruner follow values"),
    ({"budget": Budget(trials=3, epochs_per_trial=2, wall_clock_seconds=1.0)}, "the budget is a time"),
]


@pytest.mark.parametrize(("fields", "excuse"), SEEDS)
def test_a_seed_must_give_the_same_configurations_unless_timing_decides(fields: dict[str, Any], excuse: str | None) -> None:
    spec = spec_of(**fields)
    here = PLANTED["configurations"][0](record_of(spec))
    columns = list(exact_columns(pair_of(here, spec=spec)))
    found = columns[1]
    assert found.name == "configurations"
    assert (found.answer, found.decides) == ((Answer.DIFFERENT, True) if excuse is None else (Answer.INCONCLUSIVE, False))
    assert excuse is None or excuse in found.why
    # what was trained in both is the same work, whoever asked for it
    assert answers(columns)["validation metrics"] == "REPRODUCED"


def test_a_sampler_with_a_model_follows_values_that_another_processor_changes() -> None:
    spec = spec_of(sampler=Strategy(name="tpe"))
    here = PLANTED["configurations"][0](record_of(spec))
    found = list(exact_columns(pair_of(here, spec=spec, numerics=(CPU,))))[1]
    assert (found.answer, found.decides) == (Answer.INCONCLUSIVE, False)


@pytest.mark.parametrize(
    ("charged", "answer"), [("infrastructure", "INCONCLUSIVE"), ("user", "INCONCLUSIVE"), (None, "DIFFERENT")]
)
def test_a_run_that_fails_here_is_different_unless_the_machine_is_charged(charged: Any, answer: str) -> None:
    columns = list(exact_columns(pair_of(replace(record_of(SPEC), status="failed", reason="x", charged=charged))))
    assert [(column.name, column.answer.value, column.decides) for column in columns] == [("status", answer, True)]


def test_nothing_in_common_is_inconclusive_and_nothing_equal_is_claimed() -> None:
    here = record_of(SPEC, configurations=[{"x": 0.7}, {"x": 0.8}, {"x": 0.9}])
    found = answers(list(exact_columns(pair_of(here))))
    assert (found["configurations"], found["validation metrics"]) == ("DIFFERENT", "INCONCLUSIVE")
    assert "trial states" not in found


# --- statistical ---


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
    assert four.answer is Answer.DIFFERENT


def test_quantiles_are_those_of_student() -> None:
    stats = pytest.importorskip("scipy.stats")
    for degrees in (1, 2, 4, 30, 31, 60, 1000):
        assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=1e-4)


def test_one_in_twenty_runs_of_the_same_kind_is_outside() -> None:
    generator = random.Random(0)
    outside = 0
    for _ in range(1000):
        *theirs, ours = (generator.gauss(0.9, 0.01) for _ in range(6))
        outside += next(quality_columns("c", seeds_of(theirs), seeds_of([ours]))).answer is Answer.DIFFERENT
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
    ],
)
def test_values_of_equal_configurations_are_held_to_a_margin_on_another_processor(by: Sequence[float], answer: str) -> None:
    (column,) = value_columns(pair_of(shifted(by), numerics=(CPU,)))
    assert (column.answer.value, column.tolerance, column.decides) == (answer, "statistical", True)


def test_equal_values_and_unexcused_ones_have_no_such_column() -> None:
    assert not list(value_columns(pair_of(record_of(SPEC), numerics=(CPU,))))
    assert not list(value_columns(pair_of(shifted((0.1, 0.1, 0.1)))))


# --- bound to the machine ---

ALL_BOUND = {bound.metric: metric(100.0) for bound in BOUNDS}


def bound_pair(ratio: float, sentinel: float = 1.0, **more: Any) -> Pair:
    flags = tuple(FlagRecord(name=name, text="x") for name in more.pop("flags", ()))
    bundle = record_of(SPEC, metrics=ALL_BOUND)
    here = record_of(SPEC, metrics={bound.metric: metric(100.0 * ratio) for bound in BOUNDS}, flags=flags)
    before = {**bundle.environment["machine_before"], "sentinel_ns": 20_000_000 * sentinel}
    here = replace(here, environment={**here.environment, "machine_before": before})
    return pair_of(here, bundle, **more)


def bound_answers(pair: Pair) -> dict[str, str]:
    columns = list(machine_columns(pair))
    assert not any(column.decides for column in columns)
    assert {column.tolerance for column in columns} == {"machine"}
    return answers(columns)


def test_a_ratio_in_the_band_is_reproduced() -> None:
    for ratio in (0.81, 1.0, 1.24):
        assert set(bound_answers(bound_pair(ratio)).values()) == {"REPRODUCED"}


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.metric)
def test_a_ratio_outside_the_band_is_different_on_the_same_quiet_machine_alone(bound: Any) -> None:
    for ratio in (bound.band * 1.01, 0.99 / bound.band):
        assert bound_answers(bound_pair(ratio))[bound.metric] == "DIFFERENT"
        assert bound_answers(bound_pair(ratio, flags=["busy_machine"]))[bound.metric] == "INCONCLUSIVE"
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
    assert column.answer is Answer.INCONCLUSIVE
    assert "another meter: estimated, model here, measured, rapl in the bundle" in column.why


def test_a_run_without_a_sentinel_is_not_called_different() -> None:
    pair = bound_pair(9.0)
    bare = replace(pair.here, environment={**pair.here.environment, "machine_before": None})
    assert set(bound_answers(replace(pair, here=bare)).values()) == {"INCONCLUSIVE"}


# --- the answer ---


def column(answer: Answer, **more: Any) -> Column:
    return Column(**{"name": "c", "tolerance": "exact", "where": "w", "answer": answer, "why": "why", **more})


def test_the_worst_deciding_column_is_the_answer() -> None:
    good, bad, unsure = (column(answer) for answer in (Answer.REPRODUCED, Answer.DIFFERENT, Answer.INCONCLUSIVE))
    assert overall([good], []) == (Answer.REPRODUCED, "every exact and statistical column agrees")
    assert overall([good, unsure], [])[0] is Answer.INCONCLUSIVE
    assert overall([good, unsure, bad], []) == (Answer.DIFFERENT, "c differ; nothing in the table above explains it")
    assert overall([], [])[0] is Answer.INCONCLUSIVE
    assert of_columns([]) is Answer.INCONCLUSIVE


def test_columns_that_nobody_promised_and_times_do_not_decide() -> None:
    good = column(Answer.REPRODUCED)
    assert overall([good, column(Answer.INCONCLUSIVE, decides=False)], [])[0] is Answer.REPRODUCED
    assert overall([good, column(Answer.DIFFERENT, tolerance="machine", decides=False)], [])[0] is Answer.REPRODUCED
    assert overall([column(Answer.REPRODUCED, tolerance="machine", decides=False)], [])[0] is Answer.INCONCLUSIVE


def test_another_experiment_is_never_reproduced() -> None:
    answer, why = overall([column(Answer.REPRODUCED)], ["optuna is 5.1 here, 5.0 in the bundle"])
    assert answer is Answer.INCONCLUSIVE
    assert why == "every column agrees, but it is not the same experiment; changed: optuna is 5.1 here, 5.0 in the bundle"
    answer, why = overall([column(Answer.DIFFERENT)], ["seed is 7 here, 0 in the bundle"])
    assert (answer, why) == (Answer.DIFFERENT, "c differ; changed: seed is 7 here, 0 in the bundle")
