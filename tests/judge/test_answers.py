"""Arithmetic and properties of the answers; what they say of each situation is in tests/corpus/scenarios.py."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tuneoff
from builders.made_results import Draw, Entry, results, steady
from builders.made_runs import METRIC, made_run
from builders.present import present
from builders.results_folders import write_examples
from corpus.scenarios import billed, pair
from metric_directions import DIRECTIONS
from tuneoff.errors import ResultsError
from tuneoff.experiment.metric_catalogue import QUESTIONS
from tuneoff.experiment.schema import AnchorsPart
from tuneoff.judge.answers.across import normalised
from tuneoff.judge.answers.answer import Answers, Verdict
from tuneoff.judge.answers.anytime import Clock, curves
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.groups import grouped, log_billing_step
from tuneoff.judge.metrics import better, bounds, default_unit, is_of_objective
from tuneoff.judge.results import Results, read_results
from tuneoff.measure.spans import boundaries
from tuneoff.record.metric_value import metric_value

pytest.importorskip("scipy")
OBJECTIVE = "validation_accuracy"
FOUR = ("a", "b", "c", "d")
MEANS = st.fixed_dictionaries({name: st.sampled_from([1000.0, 1010.0, 1200.0]) for name in FOUR})


def among(made: Answers, names: tuple[str, ...]) -> list[Verdict]:
    """Return the verdicts between these adapters."""
    return [verdict for verdict in made.verdicts if verdict.one in names and verdict.other in names]


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(means=MEANS, fails=st.booleans())
def test_a_fifth_and_a_sixth_adapter_change_no_verdict_between_the_other_four(means: Mapping[str, float], fails: bool) -> None:
    four = [
        Entry(name, steady(mean, spread=0.05, key=name), status={3: "failed"} if fails and name == "a" else {})
        for name, mean in means.items()
    ]
    more = [Entry("fifth", steady(10.0, key="5")), Entry("sixth", steady(5000.0, key="6"), status={3: "failed"})]
    alone = answers(results(four))
    for together in ([*four, *more], [four[0], more[0], *four[1:], more[1]]):
        assert among(answers(results(together)), FOUR) == list(alone.verdicts)
    seven = [*four, *(Entry(name, steady(key=name)) for name in "efg")]  # control: beyond the family
    assert among(answers(results(seven)), FOUR) != list(alone.verdicts)


@pytest.mark.slow
def test_answers_of_a_hundred_thousand_trials_take_a_few_seconds() -> None:
    """Nothing in them grows with the number of trials; 4 s of CPU time are twice of what is aimed at."""

    def drawn(key: str) -> Draw:
        return lambda seed: {metric: 1 + 0.1 * random.Random(f"{key} {seed}").random() for metric in QUESTIONS.values()}

    entries = [Entry(name, drawn(f"{name} {task}"), variant={"task": f"t{task}"}) for task in range(12) for name in FOUR]
    made = results(entries, seeds=range(10), questions=dict(QUESTIONS))
    trials = made_run(made.records[0].run_spec(), [[{METRIC: 0.5}]] * 210).trials
    records = tuple(replace(record, trials=trials) for record in made.records)
    made = replace(made, records=records, selected={record.run_id: record for record in records})
    begin = time.process_time()
    answers(made)
    assert time.process_time() - begin < 4.0


@pytest.mark.parametrize(("search", "best"), [(0.9, 0.98), (0.5, 0.1)])
def test_regret_is_one_at_random_search_and_zero_at_the_best_known(search: float, best: float) -> None:
    anchors = AnchorsPart(random_search=search, best_known=best, source="made")
    assert [normalised(value, anchors) for value in (search, best)] == [1, 0]
    assert normalised((search + best) / 2, anchors) == pytest.approx(0.5)


def test_a_run_that_has_no_cost_to_compare_makes_the_billing_step_of_the_others_no_greater() -> None:
    """A run that failed after half a second is a failure, and no cost of one second."""
    made = billed(100.0, 110.0)
    cells = grouped(made)
    record = present(cells[0].runs[3].record)
    metrics = {**record.metrics, "time.jct": metric_value(500.0, "ms")}

    def step(**changes: Any) -> float:
        run = replace(cells[0].runs[3], record=replace(record, **changes))
        runs = (*cells[0].runs[:3], run, *cells[0].runs[4:])
        return log_billing_step([replace(cells[0], runs=runs), *cells[1:]], "cost.job")

    usual = -2 * math.log1p(-1 / 101 / 2)
    assert step() == step(status="failed", reason="planted", metrics=metrics) == pytest.approx(usual)
    assert step(metrics={"time.jct": metrics["time.jct"]}) == pytest.approx(usual)
    assert step(metrics=metrics) == pytest.approx(2 * math.log(2))  # control: a cost of one second


@pytest.mark.parametrize("metric", [name for name in DIRECTIONS if not name.startswith("quality.")])
def test_what_is_used_up_is_better_small_and_what_is_done_is_better_great(metric: str) -> None:
    assert better(metric, OBJECTIVE, "max") == DIRECTIONS[metric]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_quality_follows_the_objective_and_its_test_score_too(mode: Any) -> None:
    for metric in ("quality.test", "quality.validation", "test.test_accuracy"):
        assert (better(metric, OBJECTIVE, mode), is_of_objective(metric, OBJECTIVE)) == (mode, True)
    assert better("test.test_loss", OBJECTIVE, "max") == "min"
    assert better("test.test_macro_f1", "validation_loss", "min") == "max"
    assert better("quality.optimism", OBJECTIVE, "max") == "min"
    assert not is_of_objective("test.test_loss", OBJECTIVE)


@pytest.mark.parametrize(
    "broken",
    [{"confidence": "high"}, {"questions": []}, {"margin_percent": -1}, {"family_size": 0}, {"anchors": {"": 3}}],
)
def test_a_damaged_analysis_is_refused_and_no_default_decides_in_its_place(broken: dict[str, Any]) -> None:
    with pytest.raises(ResultsError, match=rf"the analysis of a plan is damaged: {next(iter(broken))}.*; begin a new folder"):
        answers(pair(**broken))


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder: Path = tmp_path_factory.mktemp("anytime") / "r"
    write_examples(folder, seeds=range(2))
    return read_results(folder)


def test_values_of_records_have_the_unit_of_their_metric_and_are_within_its_bounds(examples: Results) -> None:
    for record in examples.records:
        objective = record.run_spec().experiment.objective.metric
        for name, value in record.metrics.items():
            low, high = bounds(name, objective)
            assert value.unit == default_unit(name, objective), name
            assert value.value is None or low <= value.value <= high, name


@pytest.mark.parametrize(("least", "is_cut_off"), [(0.0, True), (-0.001, False)])
def test_an_interval_of_a_loss_ends_at_0_unless_a_value_is_below(least: float, is_cut_off: bool) -> None:
    losses = (least, 0.001, 0.004)
    entry = Entry("a", lambda seed: {"quality.test": losses[seed]}, mode="min", metric="validation_loss")
    (group,) = answers(results([entry], range(3))).groups
    interval = group.median("quality.test")
    assert interval is not None
    assert (interval.low == 0) == is_cut_off
    assert interval.low <= 0 < interval.high


def test_a_curve_never_gets_worse_and_moves_on_on_every_clock(examples: Results) -> None:
    found = [curve for curve in curves(examples) if curve.steps]
    assert [curve.steps for curve in tuneoff.curves(str(examples.folder)) if curve.steps] == [curve.steps for curve in found]
    for curve in found:
        values = [step.value for step in curve.steps]
        assert values == sorted(values, reverse=curve.group.spec.experiment.objective.mode == "min")
        for clock in get_args(Clock):
            reached = [place for step in curve.steps if (place := step.at(clock)) is not None]
            assert reached == sorted(reached)
            assert not reached or reached[-1] <= curve.ends[clock]


def test_energy_of_a_curve_is_that_of_the_parts_before_and_grows_evenly_in_one(examples: Results) -> None:
    curve = next(curve for curve in curves(examples) if "kwh" in curve.ends)
    record = curve.record
    energy, cost = (
        {part: record.metrics[f"{kind}.step.{part}"].value or 0.0 for part in ("deploy", "setup", "trial")}
        for kind in ("energy", "cost")
    )
    assert curve.ends["kwh"] * 3.6e6 == pytest.approx(sum(energy.values()))
    assert curve.ends["usd"] == pytest.approx(sum(cost.values()))
    marks = boundaries(record)
    start, end = present(marks.first_submitted_ns), present(marks.last_ended_ns)
    share = (present(curve.steps[0].job_seconds) * 1e9 - start) / (end - start)
    before = energy["deploy"] + energy["setup"]
    assert present(curve.steps[0].kwh) * 3.6e6 == pytest.approx(before + share * energy["trial"])


def test_a_run_without_energy_has_no_such_clock_and_says_why() -> None:
    made = results([Entry("a", steady())], seeds=[0])
    record = made_run(made.records[0].run_spec(), [[{METRIC: 0.5}], [{METRIC: 0.7}]])
    (curve,) = curves(replace(made, records=(record,), selected={record.run_id: record}))
    assert set(curve.ends) == {"trials", "seconds"}
    assert curve.reasons == {"kwh": "the run has no energy of its parts", "usd": "the run has no cost of its parts"}
    assert all(step.kwh is None for step in curve.steps)
