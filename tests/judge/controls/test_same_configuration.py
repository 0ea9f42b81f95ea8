"""The same-configuration control: equal to the last bit, and whatever is not is named."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders.made_runs import METRIC, Curve, made_run, made_spec, planned, results_of
from tuneoff.base.identity import configuration_digest
from tuneoff.judge.controls.compute import controls
from tuneoff.judge.controls.controls_output import headlines, lines, to_json
from tuneoff.judge.controls.same_configuration import Equality, SameConfiguration
from tuneoff.record.run_record import RunRecord, TestRecord

FOLDER = Path("results")

CURVES: list[Curve] = [[{METRIC: 0.5, "loss": 1.25}, {METRIC: 0.75, "loss": 0.5}], [{METRIC: 0.1, "loss": 2.0}] * 2]
NAN: list[Curve] = [[{METRIC: None}]]


def run(adapter: str, curves: Sequence[Curve] = CURVES, *, replicate: int = 0, seed: int = 0, **changes: object) -> RunRecord:
    spec = made_spec(adapter, sampler="fixed", listed=len(CURVES), epochs=2, replicate=replicate, seed=seed)
    return made_run(spec, curves, **changes)  # type: ignore[arg-type]


def control(*runs: RunRecord) -> SameConfiguration:
    (found,) = controls(results_of(runs, planned(runs), {})).same_configurations
    return found


def changed(trial: int, epoch: int, metric: str, value: float | None) -> list[Curve]:
    """Return the curves with one value replaced."""
    curves = [[dict(metrics) for metrics in curve] for curve in CURVES]
    curves[trial][epoch - 1][metric] = value
    return [list(curve) for curve in curves]


def test_equal_bits_in_every_adapter_are_equal() -> None:
    found = control(run("optuna"), run("serial"), run("ray-tune"))
    assert (found.answer, found.reference, found.differences) == (Equality.EQUAL, "serial", ())
    assert [(one.label, one.configurations, one.epochs, one.values, one.unequal) for one in found.adapters] == [
        ("optuna", 2, 4, 8, 0),
        ("serial", 2, 4, 8, 0),
        ("ray-tune", 2, 4, 8, 0),
    ]


def test_trainings_that_end_by_themselves_end_at_one_epoch_in_every_adapter() -> None:
    shorter = [CURVES[0], CURVES[1][:1]]
    assert control(run("serial", shorter), run("optuna", shorter)).answer is Equality.EQUAL
    found = control(run("serial", shorter), run("optuna"))
    assert found.answer is Equality.DIFFERENT
    assert {difference.epoch for difference in found.differences} == {2}
    assert {difference.metric: set(difference.values) for difference in found.differences} == {
        "training ended by itself before it": {"yes", "absent"},
        METRIC: {"absent", "0.1"},
        "loss": {"absent", "2.0"},
    }


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_trial_that_a_pruner_stopped_says_nothing_of_where_the_training_ends(epochs: int) -> None:
    ended = made_spec("serial", sampler="fixed", listed=1, epochs=3, pruner="median")
    stopped = made_run(replace(ended, adapter="optuna"), [CURVES[0][:epochs]])
    (trial,) = stopped.trials
    stopped = replace(stopped, trials=(replace(trial, state="pruned"),))
    assert control(made_run(ended, CURVES[:1]), stopped).differences == ()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nextafter(0.5, 1), "0.5000000000000001"),
        (None, "not finite"),
    ],
)
def test_one_other_value_is_found_and_named(value: float | None, shown: str) -> None:
    runs = [run("serial"), run("optuna"), run("ray-tune", changed(0, 2, "loss", value))]
    found = control(*runs)
    assert found.answer is Equality.DIFFERENT
    assert [one.unequal for one in found.adapters] == [0, 0, 1]
    (difference,) = found.differences
    assert (difference.seed, difference.epoch, difference.metric) == (0, 2, "loss")
    assert difference.configuration == configuration_digest({"x": 0.0})
    assert difference.values == {"0.5": ("serial", "optuna"), shown: ("ray-tune",)}
    text = "\n".join(headlines(controls(results_of(runs, planned(runs), {})), FOLDER))
    place = f"differs: seed 0, configuration {difference.configuration}, epoch 2, loss"
    assert f"{place}: 0.5 (serial, optuna), {shown} (ray-tune)" in text
    assert controls(results_of(runs, planned(runs), {})).contradicts


def test_zeros_of_other_signs_differ_in_their_bits() -> None:
    zeros = [run("serial", changed(0, 1, METRIC, 0.0)), run("optuna", changed(0, 1, METRIC, -0.0))]
    assert control(*zeros).answer is Equality.DIFFERENT


def test_a_metric_that_only_one_adapter_has_differs() -> None:
    found = control(run("serial"), run("optuna", changed(1, 1, "another", 1.0)))
    assert [one.values for one in found.differences] == [{"absent": ("serial",), "1.0": ("optuna",)}]


def test_an_emulated_adapter_is_compared_and_shown_but_decides_nothing() -> None:
    runs = [run("serial"), run("optuna"), run("katib", changed(0, 1, "loss", 9.0), emulated=True)]
    found = control(*runs)
    assert found.answer is Equality.EQUAL
    assert [(one.emulated, one.unequal) for one in found.adapters] == [(False, 0), (False, 0), (True, 1)]
    (difference,) = found.differences
    assert difference.emulated_only
    both = controls(results_of(runs, planned(runs), {}))
    text = lines(both)
    assert any("katib@local (emulated)" in line for line in text)
    assert not any(line.startswith("  differs: ") for line in text)
    assert any(line.startswith("  differs where emulated, in no answer: seed 0, ") for line in text)
    assert not any("differs" in line for line in headlines(both, FOLDER))
    assert not both.contradicts
    assert to_json(both)["same_configurations"][0]["differences"][0]["emulated_only"]


def test_a_difference_between_adapters_that_an_emulated_one_has_too_decides() -> None:
    other = changed(0, 1, "loss", 9.0)
    found = control(run("serial"), run("katib", other, emulated=True), run("optuna", other))
    assert (found.answer, len(found.contradicting)) == (Equality.DIFFERENT, 1)


def test_adapters_that_differ_where_the_reference_has_no_run_are_different() -> None:
    runs = [run(name, seed=1) for name in ("serial", "optuna", "ray-tune")]
    runs += [run("serial", status="failed", reason="boom"), run("optuna"), run("ray-tune", changed(0, 2, "loss", 0.9))]
    found = control(*runs)
    assert (found.answer, found.reference) == (Equality.DIFFERENT, "serial")
    assert [one.unequal for one in found.adapters] == [0, 0, 0]  # each as the reference, as far as that goes
    both = controls(results_of(runs, planned(runs), {}))
    assert both.contradicts
    assert headlines(both, FOLDER)[0].endswith("DIFFERENT: 1 value not the same in all frameworks.")
    assert "all equal; 2 planned configurations not compared with serial" in "\n".join(lines(both))


def test_adapters_that_share_epochs_without_the_reference_are_compared() -> None:
    runs = [run("serial", seed=1), run("serial", status="failed", reason="boom"), run("optuna"), run("ray-tune")]
    assert control(*runs).answer is Equality.INCOMPLETE


def test_an_emulated_adapter_is_no_reference() -> None:
    found = control(run("katib", emulated=True), run("optuna"), run("ray-tune"))
    assert (found.reference, found.answer) == ("optuna", Equality.EQUAL)


def test_configurations_that_an_adapter_lacks_make_it_incomplete() -> None:
    found = control(run("serial"), run("optuna", CURVES[:1]))
    assert found.answer is Equality.INCOMPLETE
    assert [one.lacking for one in found.adapters] == [0, 1]


def test_a_run_that_is_not_done_makes_it_incomplete_and_is_named() -> None:
    runs = [run("serial"), run("optuna"), run("ray-tune", status="failed", reason="boom")]
    assert control(*runs).answer is Equality.INCOMPLETE
    assert "seed 0 failed" in "\n".join(lines(controls(results_of(runs, planned(runs), {}))))


def test_without_anything_in_common_there_is_no_answer() -> None:
    assert control(run("serial"), run("optuna", [])).answer is Equality.NOTHING
    assert controls(results_of([run("serial")], planned([run("serial")]), {})).same_configurations == ()


def test_equal_seeds_are_compared_and_a_repetition_of_an_entry_too() -> None:
    other = changed(0, 1, "loss", 7.0)  # another split of the data: other values for another seed are right
    runs = [run("serial"), run("serial", replicate=1), run("serial", other, seed=1), run("serial", other, seed=1, replicate=1)]
    found = control(*runs)
    assert [(one.label, one.configurations) for one in found.adapters] == [("serial", 4), ("serial#2", 4)]
    assert found.answer is Equality.EQUAL


def test_values_that_are_not_finite_are_compared_by_what_they_were() -> None:
    assert control(run("serial", NAN), run("optuna", NAN)).differences == ()


def test_whether_the_same_model_was_tested_is_told_and_decides_nothing() -> None:
    tests = [TestRecord(trial="t0", scores={}, tested_ns=1, checkpoint_sha256=digest) for digest in ("aa", "aa", "bb")]
    runs = [run(name, test=test) for name, test in zip(("serial", "optuna", "ray-tune"), tests, strict=True)]
    found = control(*runs)
    assert [one.same_model for one in found.adapters] == [None, True, False]
    assert found.answer is Equality.EQUAL
    assert control(run("serial"), run("optuna")).adapters[1].same_model is None


def test_the_order_of_trials_and_records_changes_nothing() -> None:
    reordered = run("optuna")
    reordered = made_run(reordered.run_spec(), CURVES, trials=reordered.trials[::-1])
    runs = [run("serial"), reordered]
    assert control(*runs).answer is control(*runs[::-1]).answer is Equality.EQUAL


def test_the_json_has_every_difference() -> None:
    runs = [run("serial"), run("optuna", [[{METRIC: 0.0, "loss": 0.0}] * 2] * 2)]
    (found,) = to_json(controls(results_of(runs, planned(runs), {})))["same_configurations"]
    assert (found["answer"], len(found["differences"])) == ("DIFFERENT", 8)
    assert json.dumps(found, allow_nan=False)
    assert "and 5 more" in "\n".join(headlines(controls(results_of(runs, planned(runs), {})), FOLDER))
