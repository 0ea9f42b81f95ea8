"""Energy: kinds are never mixed, and a modelled order must hold for every plausible weight of the model."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from builders.made_results import Draw, Entry, Metrics, results
from builders.present import present
from tuneoff.experiment.metric_catalogue import QUESTIONS
from tuneoff.judge.answers.answer import Answers, Outcome, Verdict
from tuneoff.judge.answers.compute import answers
from tuneoff.measure.power.cpu_table import RATIO_HIGH, RATIO_LOW, weight_range
from tuneoff.record.metric_value import Kind, known

pytest.importorskip("scipy")
METRIC = "energy.per_completed_trial"
WITHOUT_TEST = "energy.per_completed_trial_without_test"
JOULES, WATTS = 2.0, 0.6  # ratio 0.3


def uses(cpu: float, cores: float, key: str) -> Draw:
    """Return a job's energy by its CPU and core seconds, with a little chance."""

    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        factor = 1 + 0.002 * chance.gauss(0, 1)
        return {
            METRIC: (JOULES * cpu + WATTS * cores) * factor / 10,
            "trials.completed": 10.0,
            "energy.cpu_seconds": cpu * factor,
            "energy.reserved_core_seconds": cores * factor,
            "energy.joules_per_cpu_second": JOULES,
        }

    return draw


def metered(joules: float, kind: Kind, key: str) -> Draw:
    """Return an energy of a kind, without a model's weights."""

    def draw(seed: int) -> Metrics:
        return {METRIC: known(joules * (1 + 0.002 * random.Random(f"{key} {seed}").gauss(0, 1)), "J", kind=kind)}

    return draw


def judged(entries: Sequence[Entry]) -> tuple[Verdict, Answers]:
    made = answers(results(entries, questions={"energy": METRIC}, primary_metric=METRIC))
    (found,) = made.verdicts
    return found, made


def test_an_order_that_holds_at_both_ends_of_the_weights_is_claimed() -> None:
    found, made = judged([Entry("a", uses(10, 10, "a")), Entry("b", uses(20, 20, "b"))])
    assert found.outcome is Outcome.BETTER
    assert {one.choice: one.outcome for one in found.sensitivities}["energy weights low"] is Outcome.BETTER
    assert found.weights == weight_range(())
    (claim,) = [one.text for one in made.claims if "needs less energy" in one.text]
    assert "at every weight from 0.19 to 0.937, 287 servers published since 2023" in claim
    assert found.is_robust
    assert any("is estimated by a model, not measured; an order is claimed only if" in limit for limit in made.limits)


def test_an_order_that_turns_over_the_weights_is_undecided_with_that_reason() -> None:
    found, _ = judged([Entry("a", uses(30, 10, "a")), Entry("b", uses(10, 60, "b"))])  # equal at a ratio of 0.4
    assert found.outcome is Outcome.UNDECIDED
    assert "worse at 0.19; better at 0.937" in found.reason
    assert "287 servers published since 2023" in found.reason
    assert not found.is_robust


def test_the_range_is_that_of_the_row_that_the_runs_used_and_named() -> None:
    def of_row(draw: Draw) -> Draw:
        row = {name: known(value, "ratio", source="x servers") for name, value in ((RATIO_LOW, 0.1), (RATIO_HIGH, 0.3))}
        return lambda seed: {**draw(seed), **row}

    entries = [Entry("a", of_row(uses(30, 10, "a"))), Entry("b", of_row(uses(10, 60, "b")))]  # equal at a ratio of 0.4
    found, made = judged(entries)
    assert found.outcome is Outcome.WORSE
    weights = present(found.weights)
    assert (weights.low, weights.high, weights.servers) == (0.1, 0.3, "x servers")
    assert any("from 0.1 to 0.3, x servers" in limit for limit in made.limits)
    mixed, _ = judged([entries[0], Entry("b", uses(10, 60, "b"))])
    assert mixed.outcome is Outcome.UNDECIDED
    assert "x servers and 287 servers published since 2023" in mixed.reason


def test_a_measured_energy_needs_no_weights() -> None:
    found, _ = judged([Entry("a", metered(10, "derived", "a")), Entry("b", metered(20, "derived", "b"))])
    assert found.outcome is Outcome.BETTER
    assert not any(one.choice.startswith("energy") for one in found.sensitivities)


def test_measured_and_estimated_energies_are_never_compared() -> None:
    found, made = judged([Entry("a", metered(10, "derived", "a")), Entry("b", uses(20, 20, "b"))])
    assert found.outcome is Outcome.UNDECIDED
    assert found.reason == "the kinds differ (derived and estimated), and such values are never compared"
    assert found.interval is None
    assert all(row.difference is None for row in found.differences)
    assert any("values of different kinds are never compared" in limit for limit in made.limits)


def test_a_modelled_energy_whose_uses_are_missing_gives_no_order() -> None:
    def without(draw: Draw) -> Draw:
        return lambda seed: {name: value for name, value in draw(seed).items() if name != "energy.cpu_seconds"}

    found, _ = judged([Entry("a", without(uses(10, 10, "a"))), Entry("b", without(uses(20, 20, "b")))])
    assert found.outcome is Outcome.UNDECIDED
    assert "the model's two weights cannot be applied" in found.reason


def test_energy_without_the_test_is_judged_by_its_own_seconds_and_not_by_those_of_the_job() -> None:
    """The test of both takes 80 of their 86 and 90 CPU seconds: with it the ratio of 0.6 is one of 0.96."""

    def job(cpu: float, key: str) -> Draw:
        def draw(seed: int) -> Metrics:
            own, whole = uses(cpu, cpu, key)(seed), uses(cpu + 80, cpu + 80, key)(seed)
            return {**whole, WITHOUT_TEST: own[METRIC]} | {
                f"{name}_without_test": own[name] for name in ("energy.cpu_seconds", "energy.reserved_core_seconds")
            }

        return draw

    entries = [Entry("a", job(6, "a")), Entry("b", job(10, "b"))]
    made = answers(results(entries, questions={"energy": WITHOUT_TEST, "whole": METRIC}, primary_metric=WITHOUT_TEST))
    own, whole = made.verdicts
    for found, ratio in ((own, 0.6), (whole, 86 / 90)):
        intervals = [present(one.interval) for one in found.sensitivities if one.choice.startswith("energy weights")]
        assert [math.exp(one.estimate) for one in intervals] == pytest.approx([ratio, ratio], rel=0.01)


def test_the_default_questions_on_energy_and_cost_leave_the_test_out() -> None:
    asked = {name: metric for name, metric in QUESTIONS.items() if name in ("time", "energy", "cost")}
    assert all(metric.endswith("_without_test") for metric in asked.values())
