"""The choice: who is chosen and when, what is said of it, and what weakens it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders.made_results import OF_EPOCHS, Draw, Entry, Metrics, over_tasks, results
from builders.present import present
from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.answers.answers_json import choice_to_json, to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Certainty, Choice
from tuneoff.judge.choice.choose import Answered, choose

QUESTIONS = {"quality": "quality.test", "time": "time.jct", "overhead": "overhead.per_trial"}
NAMES = ("optuna", "ray-tune", "syne-tune")


def runs(jct: float, overhead: float, key: str, quality: float = 0.96) -> Draw:
    """Return values with a tenth of chance of their own; times in ms."""

    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        time = jct * (1 + 0.1 * chance.gauss(0, 1))
        added = overhead * (1 + 0.05 * chance.gauss(0, 1))
        parts = {"time.deploy": jct / 10, "time.setup": 20.0, "time.result_collection": 5.0, "time.undeploy": 15.0}
        return {
            **parts,
            "time.jct": time,
            "time.jct_without_test": time,
            "overhead.per_trial": added,
            "overhead.further_trial": added,
            "overhead.job_start": 50.0,
            **OF_EPOCHS,
            "quality.test": quality + 0.01 * chance.gauss(0, 1),
            "trial_execution.median": 100.0,
        }

    return draw


def different() -> list[Entry]:
    return [
        Entry("serial", runs(3000, 2, "s")),
        Entry("optuna", runs(4000, 20, "o")),
        Entry("ray-tune", runs(12_000, 400, "r")),
        Entry("syne-tune", runs(24_000, 1500, "y")),
    ]


def chosen_of(entries: Sequence[Entry], seeds: Sequence[int] = range(10), **changes: Any) -> Choice:
    made = results(entries, seeds, questions=QUESTIONS, primary_metric="time.jct", **changes)
    return choose(made, answers(made))


def test_the_one_that_is_ahead_of_all_others_is_chosen_and_the_floor_never_is() -> None:
    choice = chosen_of(different())
    (setting,) = choice.settings
    assert setting.certainty is Certainty.SHOWN
    assert setting.chosen == ("optuna",)
    assert choice.lines[0].startswith("Use optuna. From trials of 58 to ")
    assert [row.label for row in setting.rows] == ["serial", "optuna", "ray-tune", "syne-tune"]
    assert choice.deciding is None
    assert not any("serial" in line or "no framework" in line for line in choice.lines)


def test_what_is_added_gives_the_length_from_which_on_it_is_small() -> None:
    (setting,) = chosen_of(different()).settings
    added = {row.label: row.first.added for row in setting.rows}
    per_trial = present(added["ray-tune"].per_trial).estimate
    assert per_trial == pytest.approx(0.4, rel=0.05)
    five, one = added["ray-tune"].lengths
    assert (five.share, one.share) == (0.05, 0.01)
    assert five.seconds == pytest.approx((per_trial + 10 * 0.001) / 0.025), "half of the share: the job has the other one"
    assert [length.seconds for length in added["ray-tune"].epoch_lengths] == pytest.approx([five.seconds / 10, five.seconds / 2])
    assert five.low < five.seconds < five.high
    assert five.is_extrapolated  # trials of 0.1 s were measured
    assert not added["serial"].lengths[0].is_extrapolated
    assert present(added["optuna"].own_per_job).estimate == pytest.approx(0.49)
    assert present(added["optuna"].per_job).estimate == pytest.approx(0.1)
    assert [length.seconds for length in added["optuna"].job_lengths] == pytest.approx([4, 20])


def test_ratios_are_told_against_every_other_row() -> None:
    (setting,) = chosen_of(different()).settings
    of = {row.label: row.first.ratios for row in setting.rows}
    forth, back = of["ray-tune"]["optuna"], of["optuna"]["ray-tune"]
    assert forth.estimate == pytest.approx(3, rel=0.2)
    assert forth.estimate * back.estimate == pytest.approx(1)
    assert (forth.outcome, back.outcome) == (Outcome.WORSE, Outcome.BETTER)
    assert forth.difference_s == pytest.approx(-back.difference_s)
    assert forth.difference_s == pytest.approx(8, rel=0.3)
    assert forth.is_interval


def test_too_few_seeds_describe_and_name_the_command_that_decides() -> None:
    choice = chosen_of(different(), range(3))
    assert choice.settings[0].certainty is Certainty.DESCRIBED
    assert choice.settings[0].chosen == ()
    first = (
        "So far optuna with sampler random, though 3 seeds prove nothing: in each optuna was faster than ray-tune and syne-tune"
    )
    assert choice.lines[0] == f"{first}."
    assert not any(line.startswith("Use") for line in choice.lines)
    deciding = present(choice.deciding)
    assert deciding.command == "tuneoff compare made.yaml --seeds 0-9"
    assert deciding.seconds == pytest.approx(11 * (3 + 4 + 12 + 24), rel=0.2)
    ratio = choice.settings[0].rows[2].first.ratios["optuna"]
    assert not ratio.is_interval
    assert ratio.low < ratio.estimate < ratio.high


@pytest.mark.slow
def test_equal_frameworks_are_never_chosen() -> None:
    for key in range(20):
        choice = chosen_of([Entry(name, runs(4000, 20, f"{name} {key}")) for name in NAMES])
        assert choice.settings[0].certainty is Certainty.NOT_DECIDED, key
        assert not choice.lines[0].startswith("Use")


def test_a_trade_off_chooses_nobody_and_says_so() -> None:
    choice = chosen_of([Entry("optuna", runs(4000, 20, "o", 0.80)), Entry("ray-tune", runs(12_000, 400, "r", 0.96))])
    assert choice.settings[0].chosen == ()
    assert choice.settings[0].certainty is Certainty.NOT_DECIDED
    assert "depends" in choice.lines[0]


def test_who_is_beaten_is_named_where_the_others_are_not_decided() -> None:
    entries = [
        Entry("optuna", runs(4000, 20, "o")),
        Entry("ray-tune", runs(4000, 20, "r")),
        Entry("syne-tune", runs(24_000, 1500, "y")),
    ]
    choice = chosen_of(entries)
    assert set(choice.settings[0].chosen) == {"optuna", "ray-tune"}
    assert "but not syne-tune" in choice.lines[0]


def test_claims_over_tasks_decide_where_no_task_has_seeds_enough() -> None:
    names: Mapping[str, tuple[float, float]] = {"serial": (3000, 2), "optuna": (4000, 20), "ray-tune": (12_000, 400)}
    entries = over_tasks(12, names, lambda name, task: runs(*names[name], f"{name} {task}"))
    choice = chosen_of(entries, range(1))
    (setting,) = choice.settings
    assert len(setting.scopes) == 12
    assert setting.chosen == ("optuna",)
    assert all(len(row.columns) == 12 for row in setting.rows)


def test_one_framework_alone_is_no_choice() -> None:
    choice = chosen_of([Entry("serial", runs(3000, 2, "s")), Entry("optuna", runs(4000, 20, "o"))])
    assert "only optuna" in choice.lines[0]
    choice = chosen_of([Entry("serial", runs(3000, 2, "s"))])
    assert "no framework" in choice.lines[0]


def test_caveats_name_what_could_change_the_choice_the_worst_first() -> None:
    entries = [
        Entry("optuna", runs(4000, 20, "o"), disturbed=(0, 1), flags={seed: ["sampler_without_model"] for seed in range(10)}),
        Entry("ray-tune", runs(12_000, 400, "r"), flags={3: ["best_differs"]}, status={4: "failed"}),
        Entry("katib", runs(5000, 100, "k"), emulated=True),
    ]
    caveats = chosen_of(entries).caveats
    assert [text for text in caveats if "2 of 20 runs" in text] == list(caveats[:1])
    assert "best trial is not the one" in caveats[1]
    assert "random search" in caveats[2]
    assert "1 of ray-tune" in caveats[3]
    assert "emulated" in caveats[4]


def lines_of(entries: Sequence[Entry], **changes: Any) -> list[str]:
    lines: list[str] = choice_to_json(chosen_of(entries, **changes))["lines"]
    return lines


def test_a_claim_on_all_overhead_is_not_named_as_what_a_trial_adds() -> None:
    (shown,) = (line for line in lines_of(different()) if line.startswith("Shown"))
    assert "had less overhead per trial (start-up included)" in shown
    assert "added" not in shown
    made = results(different(), questions={**QUESTIONS, "overhead": "overhead.further_trial"}, primary_metric="time.jct")
    assert not any("start-up included" in line for line in choose(made, answers(made)).lines)


@pytest.mark.parametrize(
    ("disturbed", "doubt"),
    [(range(4), ""), (range(9), ", but not checked without disturbed runs (18 of 20 runs disturbed)")],
)
def test_what_is_shown_on_disturbed_runs_says_so_in_its_sentence(disturbed: Sequence[int], doubt: str) -> None:
    names = {"optuna": (4000, 20), "ray-tune": (12_000, 400)}
    entries = [Entry(name, runs(*of, name), disturbed=disturbed) for name, of in names.items()]
    (shown,) = (line for line in lines_of(entries) if line.startswith("Shown"))
    assert shown.startswith(f"Shown at 95 % confidence with sampler random{doubt}: optuna was faster")
    assert ("few undisturbed runs" in lines_of(entries)[0]) == bool(doubt)


def test_what_another_choice_changes_is_called_not_robust_and_only_that() -> None:
    def draw(seed: int) -> Metrics:
        late = 1000 if seed < 10 else -500  # a median of seeds, and one that other choices change
        return {**runs(12_000, 400, "r")(seed), "time.jct": 4000.0 + late}

    def fast(seed: int) -> Metrics:
        return {**runs(4000, 20, "o")(seed), "time.jct": 4000.0 + seed}

    entries = [Entry("optuna", fast), Entry("ray-tune", draw, disturbed=range(9))]
    made = results(entries, range(13), questions=QUESTIONS, primary_metric="time.jct")
    found = answers(made)
    robust = {one.question.name: one.robustness for one in found.verdicts if one.outcome in (Outcome.BETTER, Outcome.WORSE)}
    (shown,) = (line for line in choose(made, found).lines if line.startswith("Shown"))
    doubts = {text for text in robust.values() if text != "robust"}
    assert doubts
    assert all(text in shown for text in doubts)
    assert ("in part" in shown) == ("robust" in robust.values())


@pytest.mark.parametrize("overhead", [20, 400])
def test_the_sampler_is_named_with_many_seeds_whatever_is_decided(overhead: float) -> None:
    entries = [Entry("optuna", runs(4000, 20, "o")), Entry("ray-tune", runs(4000 * overhead / 20, overhead, "r"))]
    assert sum("sampler random" in line for line in lines_of(entries)) == 1
    pruned = [replace(entry, sampler="tpe", pruner="asha") for entry in entries]
    assert sum("sampler tpe + asha" in line for line in lines_of(pruned)) == 1


def test_how_long_the_own_trials_and_jobs_took_stands_beside_the_limits() -> None:
    choice = chosen_of(different())
    lengths = present(choice.lengths)
    assert lengths.heads == ("framework", "trial of 10 epochs", "epoch", "job")
    assert lengths.rows[0] == ("optuna", "1.2 s *", "0.12 s", "4 s")
    assert lengths.rows[-1] == ("measured", "0.10 s", "0.010 s", "3 to 25 s")
    columns = {row["label"]: row["columns"]["random"] for row in choice_to_json(choice)["settings"][0]["rows"]}
    assert columns["serial"]["job_seconds"] == pytest.approx(3, rel=0.1)
    assert columns["syne-tune"]["job_seconds"] == pytest.approx(24, rel=0.1)
    assert columns["optuna"]["trial_seconds"] == 0.1


def test_an_emulated_framework_is_in_no_sentence_and_never_chosen() -> None:
    entries = [Entry("katib", runs(1000, 1, "k"), emulated=True), *different()]
    choice = chosen_of(entries)
    assert choice.settings[0].chosen == ("optuna",)
    assert not any("katib" in line for line in choice.lines)
    assert [row.label for row in choice.settings[0].rows][-1].startswith("katib")


def test_what_ran_in_no_seed_takes_no_seed_from_the_others() -> None:
    failed = Entry("katib", runs(1000, 1, "k"), emulated=True, status=dict.fromkeys(range(3), "failed"))
    assert chosen_of([failed, *different()], range(3)).lines[0] == chosen_of(different(), range(3)).lines[0]


@pytest.mark.parametrize("seeds", [3, 10])
def test_where_no_run_is_done_nothing_is_chosen_and_no_more_seeds_are_asked_for(seeds: int) -> None:
    entries = [Entry(name, runs(1000, 1, name), status=dict.fromkeys(range(seeds), "failed")) for name in NAMES]
    choice = chosen_of(entries, range(seeds))
    (setting,) = choice.settings
    assert (setting.certainty, setting.chosen, choice.deciding) == (Certainty.NOTHING, (), None)
    assert choice.lines[0].startswith("Nothing to choose from: no run of optuna, ray-tune or syne-tune is done")


def test_as_json_it_is_strict_and_whole() -> None:
    entries = [*different()[:3], Entry("syne-tune", runs(24_000, 1500, "y"), status=dict.fromkeys(range(6), "failed"))]
    found = json.loads(json.dumps(choice_to_json(chosen_of(entries)), allow_nan=False))
    assert found["lines"] == list(chosen_of(entries).lines)
    assert {row["label"] for row in found["settings"][0]["rows"]} == {"serial", *NAMES}


def test_frameworks_that_a_control_finds_to_differ_are_the_first_caveat() -> None:
    entries = [Entry("optuna", runs(4000, 20, "o", 0.7)), Entry("ray-tune", runs(12_000, 400, "r", 0.96))]
    assert "tuneoff controls" in chosen_of(entries).caveats[0]  # random search is the same algorithm in both
    assert chosen_of(different()).caveats == ()  # control


def declared_first(entries: Sequence[Entry], declared: int, seeds: int) -> Answered:
    """Return a folder to which seeds were added after its first run."""
    made = results(entries, range(seeds), questions=QUESTIONS, primary_metric="time.jct")
    plan = replace(made.plan, analysis={**made.plan.analysis, "seeds": list(range(declared))})
    made = replace(made, plan=plan)
    return Answered(made, answers(made))


def reversed_later(one: Entry, other: Entry, declared: int) -> list[Entry]:
    """Return two entries that change their places in the seeds that are added."""

    def joined(first: Draw, then: Draw) -> Draw:
        return lambda seed: (first if seed < declared else then)(seed)

    return [replace(one, draw=joined(one.draw, other.draw)), replace(other, draw=joined(other.draw, one.draw))]


def test_a_verdict_rests_on_the_seeds_that_were_declared_before_the_first_run() -> None:
    _, one, *_, other = different()
    entries = reversed_later(one, other, declared=10)
    before, after = (declared_first(entries, 10, seeds) for seeds in (10, 30))
    assert after.answers.verdicts == before.answers.verdicts
    assert after.choice.lines[1] == before.choice.lines[1]  # what was shown
    counted = declared_first(entries, 30, 30)  # control: all of them say the opposite
    assert counted.answers.verdicts[0].outcome is not before.answers.verdicts[0].outcome
    added = "Seeds added after the first run (10-29): medians count them"
    assert any(text.startswith(added) for text in after.choice.caveats)
    assert not any(text.startswith("Seeds") for text in (*before.choice.caveats, *counted.choice.caveats))
    groups = to_json(after.answers)["groups"]
    assert [run["is_added"] for run in groups[0]["runs"]] == [False] * 10 + [True] * 20
    assert groups[0]["estimates"]["time.jct"]["median"]["n"] == 30  # tables describe all


def test_of_too_few_seeds_those_that_were_not_slower_each_time_are_named_together_with_what_weakens_it() -> None:
    entries = [
        Entry("optuna", runs(4000, 20, "o")),
        Entry("syne-tune", runs(4000, 20, "s")),
        Entry("ray-tune", runs(9000, 400, "r")),
    ]
    assert (
        chosen_of(entries, range(3)).lines[0].startswith("So far optuna or syne-tune with sampler random, though 3 seeds prove ")
    )
    entries[-1] = replace(entries[-1], disturbed=range(2))
    assert chosen_of(entries, range(3)).lines[0].endswith("was faster than ray-tune (2 of 9 runs disturbed).")
    assert "1 seed proves nothing: in it " in chosen_of(entries, range(1)).lines[0]
    own = "Each trained configurations of its own"
    assert any(line.startswith(own) for line in chosen_of(entries, range(3)).lines)
    fixed = [replace(one, sampler="fixed") for one in entries]
    assert not any(line.startswith(own) for line in chosen_of(fixed, range(3)).lines)


def test_added_seeds_make_no_verdict_of_too_few_declared_ones() -> None:
    found = declared_first(different(), 3, 12)
    assert {verdict.outcome for verdict in found.answers.verdicts} == {Outcome.NOT_JUDGED}
    assert found.choice.settings[0].certainty is Certainty.DESCRIBED
    assert found.choice.lines[0].startswith("So far optuna with sampler random, though 3 seeds prove nothing: ")
    assert present(found.choice.deciding).command.endswith("--seeds 0-9")
    assert any(text.startswith("3 seeds: too few for any verdict") for text in found.answers.limits)


def test_the_command_that_decides_names_no_adapter_that_is_always_skipped() -> None:
    floor, *others = different()
    found = chosen_of([replace(floor, skipped="no pruner"), *others], seeds=range(3))
    assert present(found.deciding).command == "tuneoff compare made.yaml --seeds 0-9"
