"""The same-algorithm control, the effects and the noise floor: which pairs, which seeds, which words."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.made_runs import METRIC, made_run, made_spec, planned, results_of
from builders.present import present
from tuneoff.errors import ResultsError
from tuneoff.judge.controls.compute import Controls, controls
from tuneoff.judge.controls.controls_output import headlines, lines, to_json
from tuneoff.judge.controls.same_algorithm import EquivalenceAnswer
from tuneoff.record.run_record import RunRecord

FOLDER = Path("results")

pytest.importorskip("scipy")
FROZEN = {"quality_margin": 0.01, "confidence": 0.95, "primary_metric": "time.jct"}
TRIALS = 6


def runs(
    adapter: str,
    *,
    shift: float = 0.0,
    scores_shift: float = 0.0,
    seeds: Sequence[int] = range(12),
    replicate: int = 0,
    sampler: str = "random",
    pruner: str = "none",
    jct: float = 1000.0,
    emulated: bool = False,
) -> list[RunRecord]:
    """Return an adapter's runs: quality 0.9 and scores around 0.5, both with chance of their own, moved by the shifts."""
    found = []
    for seed in seeds:
        chance = random.Random(f"{adapter} {replicate} {sampler} {seed}")
        curves = [[{METRIC: 0.5 + scores_shift + chance.gauss(0, 0.1)}] for _ in range(TRIALS)]
        spec = made_spec(adapter, sampler=sampler, pruner=pruner, seed=seed, replicate=replicate)
        quality = 0.9 + shift + chance.gauss(0, 0.004)
        found.append(made_run(spec, curves, quality, metrics={"time.jct": jct + chance.gauss(0, 5)}, emulated=emulated))
    return found


def counted(adapter: str, right: Sequence[int], more: float = 0.0) -> list[RunRecord]:
    """Return runs that differ in their seed and in how many of 360 test images they name right."""
    return [made_run(made_spec(adapter, seed=seed), [], count / 360 + more) for seed, count in enumerate(right)]


def failed(records: Sequence[RunRecord], seeds: Sequence[int]) -> list[RunRecord]:
    """Return the records with those of some seeds failed."""
    planted: dict[str, Any] = {"status": "failed", "reason": "planted", "metrics": {}}
    return [replace(one, **planted) if one.run_spec().seed in seeds else one for one in records]


def judged(*groups: list[RunRecord], frozen: dict[str, object] | None = None) -> Controls:
    together = [run for group in groups for run in group]
    return controls(results_of(together, planned(together), FROZEN if frozen is None else frozen))


def test_equal_adapters_are_equivalent_and_nothing_warns() -> None:
    found = judged(runs("serial"), runs("optuna"), runs("ray-tune"))
    assert [(pair.one, pair.other, pair.seeds) for pair in found.pairs] == [
        ("serial", "optuna", 12),
        ("serial", "ray-tune", 12),
        ("optuna", "ray-tune", 12),
    ]
    assert {pair.quality.verdict for pair in found.pairs if pair.quality} == {EquivalenceAnswer.EQUIVALENT}
    assert not any(pair.scores.differs for pair in found.pairs if pair.scores)
    assert not found.contradicts
    (answer, _) = headlines(found, FOLDER)
    assert "equivalent in 3 of 3 pairs" in answer
    assert "none is shown to differ" in answer


def test_a_planted_difference_of_quality_is_warned_of() -> None:
    found = judged(runs("serial"), runs("optuna"), runs("broken", shift=-0.05))
    assert found.contradicts
    warned = [line for line in headlines(found, FOLDER) if "WARNING" in line]
    assert len(warned) == 2
    assert all("broken" in line for line in warned)
    assert "different in 2" in headlines(found, FOLDER)[0]


def test_a_difference_within_the_margin_and_too_few_seeds_are_not_warned_of() -> None:
    small = judged(runs("serial"), runs("optuna", shift=0.006))
    few = judged(runs("serial", seeds=[0, 1]), runs("optuna", seeds=[0, 1], shift=0.02))
    for found in (small, few):
        assert not found.contradicts
        assert not any("WARNING" in line for line in lines(found))
    (pair,) = few.pairs
    assert present(pair.quality).verdict is EquivalenceAnswer.NOT_SHOWN
    assert "which is not different" in headlines(few, FOLDER)[0]
    assert "seeds would show it" in "\n".join(lines(few))


def test_the_same_difference_of_images_in_two_seeds_is_not_different() -> None:
    found = judged(counted("serial", (320, 180)), counted("optuna", (315, 175)))
    (pair,) = found.pairs
    assert present(pair.quality).verdict is EquivalenceAnswer.NOT_SHOWN
    assert not found.contradicts
    equal = judged(counted("serial", (320, 180), more=2**-53), counted("optuna", (320, 180)))
    assert "quality: equal in all 2 seeds: not shown" in "\n".join(lines(equal))
    effect = present(next(one.interval for one in found.effects if one.metric == "quality.test"))
    assert effect.low == effect.high


def test_scores_of_another_distribution_are_found_in_the_family_of_all_pairs() -> None:
    found = judged(runs("serial"), runs("optuna"), runs("skewed", scores_shift=0.1))
    differing = [(pair.one, pair.other) for pair in found.pairs if pair.scores and pair.scores.differs]
    assert differing == [("serial", "skewed"), ("optuna", "skewed")]
    for scores in (present(pair.scores) for pair in found.pairs):
        assert present(scores.adjusted) >= scores.test.p


def test_only_seeds_that_both_have_done_count() -> None:
    (pair,) = judged(runs("serial", seeds=range(5)), runs("optuna", seeds=range(3, 9))).pairs
    assert pair.seeds == 2
    test = present(pair.scores).test
    assert (test.n, test.m) == (2 * TRIALS, 2 * TRIALS)


def test_a_failed_run_is_worse_than_any_success_so_nothing_is_equivalent() -> None:
    found = judged(failed(runs("serial"), [3]), failed(runs("optuna"), [3, 4]), runs("ray-tune"), failed(runs("other"), [3]))
    by_pair = {(pair.one, pair.other): pair for pair in found.pairs}
    pair = by_pair["serial", "optuna"]
    assert (pair.quality, pair.failures, pair.seeds) == (None, (1, 2), 10)
    assert "quality: a failed run is worse than any success, so there is no mean; failed runs: 1 and 2" in "\n".join(lines(found))
    assert "selected quality equivalent in 1 of 6 pairs, not judged in 5" in headlines(found, FOLDER)[0]
    both = by_pair["serial", "other"]  # failed in the same seed, which tells nothing of them
    assert (present(both.quality).interval.n, both.failures) == (11, (1, 1))
    effects = {one.one: one for one in found.effects if one.metric == "time.jct"}
    assert (effects["optuna random"].interval, effects["optuna random"].failures) == (None, (2, 1))
    assert "11 seeds; failed runs: 1 and 1" in "\n".join(lines(found))


def test_an_entry_named_twice_is_the_noise_floor_and_in_no_family() -> None:
    found = judged(runs("serial"), runs("serial", replicate=1), runs("optuna"))
    assert [(pair.one, pair.other, pair.is_noise) for pair in found.pairs] == [
        ("serial", "optuna", False),
        ("serial#2", "serial", True),
    ]
    floor_scores = present(found.pairs[1].scores)
    assert (floor_scores.adjusted, floor_scores.differs) == (None, None)
    assert "over 1 pair)" in headlines(found, FOLDER)[0]
    floor = [effect for effect in found.effects if effect.kind == "noise floor"]
    assert [(one.one, one.other, one.metric) for one in floor] == [
        ("serial#2 random", "serial", "quality.test"),
        ("serial#2 random", "serial", "time.jct"),
    ]


def test_a_noise_floor_that_is_out_of_the_margin_warns_of_nothing() -> None:
    found = judged(runs("serial"), runs("serial", replicate=1, shift=0.1))
    assert not found.contradicts


def test_emulated_adapters_are_in_no_comparison() -> None:
    found = judged(runs("serial"), runs("optuna"), runs("katib", emulated=True, shift=-0.5))
    assert [(pair.one, pair.other) for pair in found.pairs] == [("serial", "optuna")]
    reasons = {effect.one: effect.reason for effect in found.effects if "katib" in effect.one}
    assert reasons == {"katib@local (emulated) random": "emulated, so in no comparison"}


def test_runs_with_a_pruner_are_not_the_same_algorithm() -> None:
    assert judged(runs("serial", pruner="asha"), runs("optuna", pruner="asha")).pairs == ()


def test_the_algorithm_effect_is_within_an_adapter_and_the_runtime_effect_against_the_pool() -> None:
    found = judged(
        runs("serial"), runs("optuna", jct=1500), runs("optuna", sampler="default", shift=0.03, jct=1600), runs("ray-tune")
    )
    means = {(one.kind, one.one, one.metric): one.interval.estimate for one in found.effects if one.interval is not None}
    assert set(means) == {
        ("algorithm", "optuna default", "quality.test"),
        ("algorithm", "optuna default", "time.jct"),
        *(("runtime", f"{name} random", metric) for name in ("optuna", "ray-tune") for metric in ("quality.test", "time.jct")),
    }
    assert means["algorithm", "optuna default", "quality.test"] == pytest.approx(0.03, abs=0.005)
    assert means["algorithm", "optuna default", "time.jct"] == pytest.approx(100, abs=10)
    assert means["runtime", "optuna random", "time.jct"] == pytest.approx(500, abs=10)
    text = "\n".join(lines(found))
    assert "Algorithm effect (a sampler − random search in the same framework), 95 % intervals by seed:" in text
    assert "Runtime effect (random search in a framework − in serial)" in text
    assert "+0.50 s [" in text


def test_effects_are_not_at_the_end_of_a_comparison_but_in_the_evidence() -> None:
    assert not any("effect (" in line for line in headlines(judged(runs("serial"), runs("optuna")), FOLDER))


def test_a_margin_of_the_file_wins_over_that_of_the_workload_and_none_is_a_reason() -> None:
    (pair,) = judged(runs("serial"), runs("optuna"), frozen={}).pairs
    assert pair.quality is None
    assert "analysis.quality_margin" in (pair.no_quality or "")
    (pair,) = judged(runs("serial"), runs("optuna")).pairs
    assert (pair.margin.value, pair.margin.source) == (0.01, "analysis.quality_margin of the file, frozen in the plan")


def test_a_confidence_that_no_interval_can_have_is_a_reason() -> None:
    (pair,) = judged(runs("serial"), runs("optuna"), frozen={**FROZEN, "confidence": 0.3}).pairs
    assert "must be above 0.5" in (pair.no_quality or "")


@pytest.mark.parametrize("damaged", [{"confidence": "high", "primary_metric": 7}, {"confidence": 5, "quality_margin": "wide"}])
def test_a_damaged_analysis_is_refused(damaged: dict[str, object]) -> None:
    with pytest.raises(ResultsError, match=r"the analysis of a plan is damaged: (primary_metric|confidence)"):
        judged(runs("serial", seeds=[0]), frozen=damaged)


def test_nothing_is_judged_where_there_is_no_pair() -> None:
    fixed = judged(runs("serial", sampler="fixed"), runs("optuna", sampler="fixed"))
    assert (len(fixed.same_configurations), fixed.pairs) == (1, ())
    assert judged(runs("optuna", sampler="default")).is_empty
    assert judged(runs("optuna", pruner="asha"), runs("ray-tune", pruner="asha")).is_empty
    emulated = judged(runs("serial"), runs("katib", emulated=True))
    assert {one.reason for one in emulated.effects} == {"emulated, so in no comparison"}


def test_as_json_every_null_has_its_reason() -> None:
    found = to_json(judged(runs("serial", seeds=[0]), runs("optuna", seeds=[0]), runs("katib", emulated=True)))
    (pair,) = found["same_algorithm"]["pairs"]
    assert (pair["quality"], pair["quality_reason_if_null"]) == (None, "quality.test in both of 1 seeds, fewer than 2")
    assert found["effects"]
    for effect in found["effects"]:
        assert (effect["interval"] is None) == ("interval_reason_if_null" in effect)
    assert json.dumps(found, allow_nan=False)
