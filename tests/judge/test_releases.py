"""A framework over its releases: steps are shown where they are, rarely where nothing changed, and as often as is stated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.releases import Spread, found, marked, spreads
from corpus.scenarios import RELEASES, over_releases, statuses
from tuneoff.judge.answers.analysis_plan import Frozen, frozen
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Choice, ScalingCurve
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.releases import figures, frameworks, shown_steps, smallest_step_text
from tuneoff.judge.results import Results

pytest.importorskip("scipy")
ASKS = ("stage.ask, 100 trials", "stage.ask, 1000 trials")


def chosen(results: Results) -> Choice:
    return choose(answers(results))


def over(choice: Choice) -> dict[str, ScalingCurve]:
    """Return the curves over releases by what they are of."""
    return {f"{curve.metric}, {curve.beside}": curve for curve in choice.settings[0].curves if curve.over == "release"}


def measured(choice: Choice) -> tuple[list[Spread], Frozen]:
    ((_, rows),) = frameworks(choice.settings[0].rows)
    return list(spreads(figures(rows))), frozen(choice.answers.analysis)


def test_memory_of_further_trials_is_of_the_same_seed_with_more_trials() -> None:
    values = [point.value.estimate for point in over(chosen(over_releases()))["added.memory, 100 trials"].lines["Optuna"]]
    assert values == pytest.approx([7.0] * 4, rel=0.05)
    (curve,) = [curve for name, curve in over(chosen(over_releases(trials=(100,)))).items() if "memory" in name]
    assert curve.lines["Optuna"][0].value.estimate == pytest.approx(150.7, rel=0.01)


def test_a_release_whose_runs_fail_is_a_step() -> None:
    fails = over_releases(asks=(1, 1, 1, 1), of=lambda release, number: {"status": statuses(10)} if release == "4.10.0" else {})
    choice = chosen(fails)
    assert all(shown_steps(curve) == {"4.10.0": "failed runs", "5.0.0": "failed runs"} for curve in over(choice).values())
    assert [line for line in choice.lines if "4.10.0 against" in line] == ["Optuna 4.10.0 against 4.9.0: failed runs: 10 and 0."]
    assert {len(curve.lines["Optuna"]) for curve in over(choice).values()} == {3}


@pytest.mark.parametrize("seeds", [3, 10])
def test_so_few_seeds_that_none_can_be_shown_are_told(seeds: int) -> None:
    """Ten seeds bear a family of 25: four releases with eight figures, but not with a smaller error."""
    results = over_releases(seeds=seeds)
    plan = replace(results.plan, analysis={**results.plan.analysis, "family_size": 24 if seeds == 3 else 26})
    choice = chosen(replace(results, plan=plan))
    assert all(shown_steps(curve) == {} and smallest_step_text(curve) == "–" for curve in over(choice).values())
    why = {3: "3 seeds planned; a verdict needs 10", 10: "; 11 are needed"}[seeds]
    assert all(why in line for line in choice.lines if " against " in line)


def test_one_release_has_no_history() -> None:
    results = over_releases()
    kept = tuple(run for run in results.planned if run.label == "optuna==5.0.0")
    assert over(chosen(replace(results, planned=kept))) == {}


def test_the_release_of_the_command_s_environment_has_its_place() -> None:
    """It is the one that its runs found installed."""
    results = over_releases()
    bare = {
        run.run_id: replace(run, label="optuna", spec=replace(run.spec, environment=None))
        for run in results.planned
        if run.label == "optuna==4.9.0"
    }
    selected = {
        run_id: replace(record, versions={"framework": "Optuna", "framework_version": "4.9.0"}) if run_id in bare else record
        for run_id, record in results.selected.items()
    }
    planned = tuple(bare.get(run.run_id, run) for run in results.planned)
    plan = replace(results.plan, runs=planned)
    curves = over(chosen(replace(results, plan=plan, planned=planned, selected=selected, records=tuple(selected.values()))))
    assert [point.scope for point in curves[ASKS[0]].lines["Optuna"]] == list(RELEASES)


@pytest.mark.slow
def test_histories_without_a_change_are_rarely_marked_and_a_test_without_correction_is_caught() -> None:
    spread, plan = measured(chosen(over_releases()))
    assert marked(spread, plan, 40, releases=4, seeds=10) <= 3
    assert marked(spread, replace(plan, confidence=0.0), 40, releases=4, seeds=10) >= 10  # control: 24 times the error


@pytest.mark.slow
def test_histories_of_ten_releases_without_a_change_are_as_rarely_marked() -> None:
    """Of 50; `python -m benchmarks.releases` draws 1 000, with the spread of measured runs."""
    spread, plan = measured(chosen(over_releases()))
    assert marked(spread, plan, 50, releases=10, seeds=12) <= 5


@pytest.mark.slow
def test_the_smallest_step_that_is_stated_is_found_in_nine_of_ten_and_a_third_of_it_is_not() -> None:
    choice = chosen(over_releases(asks=(1, 1, 1, 1)))
    spread, plan = measured(choice)
    curves = list(over(choice).values())
    shares = [share for _, share in found(spread, curves, plan, 50, seeds=10)]
    assert len(shares) == 8
    assert sum(shares) / 8 == pytest.approx(0.9, abs=0.06)
    small = [replace(curve, smallest_step=(curve.smallest_step or 0) / 3) for curve in curves]
    assert max(share for _, share in found(spread, small, plan, 40, seeds=10)) < 0.3


def test_a_framework_in_the_command_s_environment_beside_one_in_its_own_is_warned_of() -> None:
    results = over_releases()
    shared = tuple(
        replace(run, spec=replace(run.spec, environment=None)) if run.label == results.planned[0].label else run
        for run in results.planned
    )
    for planned, is_warned in ((results.planned, False), (shared, True)):
        kinds = {warning.kind for warning in chosen(replace(results, planned=planned)).warnings}
        assert ("environments_differ" in kinds) == is_warned
