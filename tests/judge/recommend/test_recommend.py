"""Recommendations from results made by hand: who remains, why, on which runs, and when nothing is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.made_choices import KNOWN, SEEDS, ask, listing, made_folder, made_results, runs_of
from tuneoff.capabilities import Offer, Support
from tuneoff.errors import ExperimentError
from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import Answered
from tuneoff.judge.recommend.eligibility import No
from tuneoff.judge.recommend.recommend import to_json
from tuneoff.judge.recommend.recommendation import Cited, Recommendation
from tuneoff.judge.recommend.recommendation_text import lines

pytest.importorskip("scipy")
KATIB = listing("katib", platforms=("kubernetes", "emulated"), emulated_platforms=("emulated",))


def fast_and_slow(**more: Any) -> Answered:
    """Return a folder in which plain is twice as fast as optuna and as good, and ray-tune is like optuna."""
    return made_folder(
        runs_of("plain", seconds=1.0, **more),
        runs_of("optuna", seconds=2.0, **more),
        runs_of("ray-tune", seconds=2.01, **more),
    )


def all_cited(found: Recommendation) -> list[Cited]:
    families = [reason for family in found.families for one in family.weighed for reason in one.reasons]
    differs = [reason for family in found.families for reason in family.differs]
    return [run for reason in (*families, *differs) for run in reason.runs]


def test_who_is_better_in_one_question_and_as_good_in_the_other_is_recommended_alone() -> None:
    found = ask(fast_and_slow())
    (family,) = found.families
    assert family.recommended == ("plain",)
    assert set(family.dominated) == {"optuna", "ray-tune"}
    assert found.headline == ("workload null, sampler random: plain; optuna and ray-tune are dominated",)
    assert found.exit_code == 0


def test_equal_adapters_have_no_difference_that_matters() -> None:
    found = ask(made_folder(runs_of("plain", spread=0.001), runs_of("optuna", spread=0.001)))
    assert found.headline == ("workload null, sampler random: no difference that matters between plain and optuna",)
    assert found.exit_code == 0


def test_what_is_weighed_against_each_other_is_said() -> None:
    found = ask(made_folder(runs_of("plain", seconds=1.0, quality=0.8), runs_of("optuna", seconds=2.0, quality=0.9)))
    assert found.families[0].recommended == ("plain", "optuna")
    (pair,) = found.families[0].against
    assert {pair.one: pair.better, pair.other: pair.worse} == {"plain": ("time",), "optuna": ("quality",)}


def test_what_is_not_decided_is_said_and_dominates_nobody() -> None:
    found = ask(made_folder(runs_of("plain", spread=0.5), runs_of("optuna", spread=0.5)))
    assert found.families[0].dominated == ()
    assert found.headline[0].startswith("workload null, sampler random: not decided between plain and optuna in ")


def test_below_ten_seeds_nothing_dominates_however_different_it_is() -> None:
    found = ask(made_folder(runs_of("plain", seconds=1.0, seeds=SEEDS[:9]), runs_of("optuna", seconds=99.0, seeds=SEEDS[:9])))
    assert found.families[0].recommended == ("plain", "optuna")
    assert "nothing is judged" in found.headline[0]
    assert found.families[0].against == ()
    assert any("9 seeds" in line for line in lines(found))


def test_who_fails_is_not_recommended_over_who_does_not() -> None:
    folder = made_folder(runs_of("plain", seconds=1.0, failed=(3,)), runs_of("optuna", seconds=2.0))
    found = ask(folder)
    assert "optuna" not in found.families[0].dominated
    assert any(reason.text == "plain failed in 1 of 10 runs" for reason in found.families[0].weighed[0].reasons)


@pytest.mark.parametrize(
    ("declared", "asked", "kind"),
    [
        ({"retry": Support.NOT_BY_FRAMEWORK}, {"must_retry": True}, No.FRAMEWORK),
        ({"platforms": ("cluster",)}, {"platform": "local"}, No.TUNEOFF),
        ({"pruners": {"none": Offer(support=Support.NOT_BY_FRAMEWORK)}}, {"pruner": "none"}, No.FRAMEWORK),
    ],
)
def test_who_fails_the_filter_appears_nowhere_but_among_those_left_out(
    declared: dict[str, Any], asked: dict[str, Any], kind: No
) -> None:
    known = [listing("plain", **declared), listing("optuna"), listing("ray-tune")]
    found = ask(fast_and_slow(), known=known, **asked)
    assert [one.adapter for one in found.excluded] == ["plain"]
    assert [obstacle.kind for obstacle in found.excluded[0].obstacles] == [kind]
    weighed = [label for family in found.families for one in family.weighed for label in one.setting.labels]
    assert set(weighed) == {"optuna", "ray-tune"}
    assert "plain" not in to_json(found)["recommended"]
    assert not any(verdict.one == "plain" for family in found.families for one in family.weighed for verdict in one.dominances)


def test_when_nobody_meets_the_constraints_that_is_the_answer() -> None:
    found = ask(fast_and_slow(), known=[listing("plain", retry=Support.NOT_BY_FRAMEWORK)], must_retry=True)
    assert found.headline == ("no framework meets the constraints",)
    assert found.exit_code == 1


def test_every_reason_cites_runs_that_exist_in_its_folder() -> None:
    folder = fast_and_slow()
    cited = all_cited(ask(folder))
    assert cited
    for run in cited:
        assert run.folder == folder.results.folder
        assert folder.results.standing[run.run_id].execution_id == run.execution_id


def test_a_sampler_that_is_another_one_cites_the_runs_that_stand_for_it() -> None:
    """A skipped `default` that is random search has no run of its own."""
    random, twins = (runs_of("plain", sampler=name, variant={"sampler": name}) for name in ("random", "default"))
    results = made_results(random, [(spec, None) for spec, _ in twins], runs_of("optuna", sampler="default", variant={}))
    same = {twin.run_id: spec.run_id for (spec, _), (twin, _) in zip(random, twins, strict=True)}
    planned = tuple(
        replace(run, skip_reason="same", same_as=same[run.run_id]) if run.run_id in same else run for run in results.planned
    )
    results = replace(results, planned=planned, plan=replace(results.plan, runs=planned))
    known = [listing(name, samplers={"random": Offer(), "default": Offer()}) for name in ("plain", "optuna")]
    found = ask(Answered(results=results, answers=answers(results)), known=known, sampler="default")
    cited = all_cited(found)
    assert {run.run_id for run in cited} >= set(same.values())
    assert all(results.standing[run.run_id].execution_id == run.execution_id for run in cited)


def test_a_verdict_cites_only_the_seeds_that_it_compares() -> None:
    folder = made_folder(runs_of("plain"), runs_of("optuna"))
    blank = replace(folder.answers.verdicts[0].differences[0], difference=None)
    verdicts = tuple(replace(one, differences=(blank, *one.differences[1:])) for one in folder.answers.verdicts)
    found = ask(replace(folder, answers=replace(folder.answers, verdicts=verdicts)))
    seeds = {folder.results.standing[run.run_id].run_spec().seed for run in all_cited(found)}
    assert seeds == set(SEEDS) - {blank.seed}


def test_only_the_sampler_and_the_platform_that_were_asked_for_are_weighed() -> None:
    known = [
        listing(name, platforms=("local", "cluster"), samplers={"random": Offer(), "grid": Offer()}) for name in ("plain", "x")
    ]
    random, grid = runs_of("plain"), runs_of("plain", sampler="grid", variant={"sampler": "grid"})
    folder = made_folder(random, grid, runs_of("x", platform="cluster"))
    assert [one.name for one in ask(folder, known=known, sampler="grid").families] == ["workload null, sampler grid"]
    assert ask(folder, known=known, sampler="grid").families[0].recommended == ("plain",)
    there = ask(folder, known=known, platform="cluster")
    assert [one.setting.labels for family in there.families for one in family.weighed] == [("x",)]
    assert there.not_measured == ("plain",)


def test_what_only_ran_on_a_stand_in_can_but_was_not_measured_and_recommends_nothing() -> None:
    folder = made_folder(runs_of("plain"), runs_of("katib", seconds=0.1, platform="emulated"), emulated=("emulated",))
    found = ask(folder, known=[*KNOWN, KATIB], platform="kubernetes")
    assert [one.adapter for one in found.capable] == ["katib"]
    assert found.headline == (
        "katib can do what is asked for, but was not measured at it, so nobody is recommended",
        "katib@emulated has 10 runs, on a stand-in for its platform: they recommend nothing",
    )
    assert found.exit_code == 1
    assert any("--adapter katib@kubernetes" in line for line in lines(found))


def test_a_stand_in_is_in_no_front_though_no_platform_is_asked_for() -> None:
    folder = made_folder(runs_of("plain"), runs_of("katib", seconds=0.1, platform="emulated"), emulated=("emulated",))
    found = ask(folder, known=[*KNOWN, KATIB])
    assert found.families[0].weighed[0].setting.labels == ("plain",)
    assert "katib" not in found.not_measured
    assert [(one.adapter, one.obstacles[0].kind) for one in found.excluded] == [("katib", No.ELSEWHERE)]
    assert [one["label"] for one in to_json(found)["only_emulated"]] == ["katib@emulated"]
    assert "the only one that can and was measured" in found.headline[0]


def test_a_repetition_of_an_entry_is_nobody_to_choose() -> None:
    found = ask(made_folder(runs_of("plain"), runs_of("plain", replicate=1), runs_of("optuna")))
    assert found.families[0].weighed[0].setting.labels == ("plain", "optuna")


def test_a_framework_that_is_not_installed_here_counts_where_it_was_measured() -> None:
    missing = listing("optuna", state="missing", text="adapter 'optuna' needs the optuna package; run: pip install optuna")
    measured = ask(fast_and_slow(), known=[KNOWN[0], missing])
    assert "optuna" in measured.families[0].weighed[0].setting.labels
    assert "optuna" in [one.adapter for one in measured.capable]
    assert any("pip install optuna" in line for line in lines(measured))
    elsewhere = ask(made_folder(runs_of("plain")), known=[KNOWN[0], missing])
    assert [(one.adapter, one.obstacles[0].kind) for one in elsewhere.excluded] == [("optuna", No.ABSENT)]


def test_a_measured_adapter_without_its_plugin_is_left_out_with_the_reason() -> None:
    found = ask(fast_and_slow(), known=[KNOWN[0], KNOWN[1]])
    assert [(one.adapter, one.obstacles[0].kind) for one in found.excluded] == [("ray-tune", No.ABSENT)]


def test_faults_without_results_are_refused_in_one_line() -> None:
    with pytest.raises(ExperimentError, match="--must-survive needs --faults"):
        ask(fast_and_slow(), must_survive=("sigkill",))


def test_the_preferred_question_is_told_first_and_changes_no_answer() -> None:
    plain, preferring = ask(fast_and_slow()), ask(fast_and_slow(), prefer="quality")
    texts = [found.families[0].weighed[0].reasons[-1].text for found in (plain, preferring)]
    assert texts[0].index("time") < texts[0].index("quality")
    assert texts[1].index("quality") < texts[1].index("time")
    assert preferring.headline == plain.headline
    assert preferring.families[0].recommended == plain.families[0].recommended


def test_a_planted_verdict_changes_the_answer() -> None:
    """Show that the answer rests on the verdicts: with the other outcome it is another one."""
    folder = made_folder(runs_of("plain", seconds=1.0), runs_of("optuna", seconds=2.0))
    assert ask(folder).families[0].recommended == ("plain",)
    flipped = {Outcome.BETTER: Outcome.WORSE, Outcome.WORSE: Outcome.BETTER}
    verdicts = tuple(replace(one, outcome=flipped.get(one.outcome, one.outcome)) for one in folder.answers.verdicts)
    assert ask(replace(folder, answers=replace(folder.answers, verdicts=verdicts))).families[0].recommended == ("optuna",)


def test_control_characters_and_markup_in_names_are_no_lines_of_their_own() -> None:
    folder = made_folder(runs_of("<script>\nx"), runs_of("plain"))
    found = ask(folder, known=[listing("<script>\nx"), KNOWN[0]])
    assert all("\n" not in line for line in lines(found))


def test_the_files_own_settings_are_what_is_asked_for() -> None:
    both = {"none": Offer(), "asha": Offer()}
    known = [listing("plain", pruners=both), listing("optuna", pruners=both), listing("nevergrad")]

    def told(*pruners: str) -> str:
        groups = [runs_of(name, pruner=pruner) for pruner in pruners for name in ("plain", "optuna")]
        return "\n".join(lines(ask(made_folder(*groups), known=known)))

    found = told("asha")
    assert "asked for: nothing beyond the file: sampler random + asha, 2 workers, 10 trials, 0.50 s per trial" in found
    assert "nevergrad: not with the file: adapter 'nevergrad' does not list pruner 'asha'" in found
    assert "to measure what was not" not in found
    for pruners in (("none",), ("asha", "none")):  # controls
        assert "--adapter" in told(*pruners)
        assert "not with the file" not in told(*pruners)
