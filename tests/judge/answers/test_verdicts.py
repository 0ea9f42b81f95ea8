"""What is claimed of a pair, by which rules, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from builders.made_results import Entry, Metrics, results, steady, verdict_on
from builders.present import present
from tuneoff.judge.answers.answer import Answers, Outcome, Verdict
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.results import Results

pytest.importorskip("scipy")


def found(made: Answers, one: str, other: str, question: str = "time") -> Verdict:
    """Return the verdict of a pair, which must be exactly one."""
    (verdict,) = [row for row in made.verdicts if (row.one, row.other, row.question.name) == (one, other, question)]
    return verdict


def outcome(made: Results, question: str = "time") -> Outcome:
    """Return the only verdict's outcome on a question."""
    return verdict_on(answers(made), question).outcome


def given(values: Sequence[float], metric: str = "time.jct") -> Entry:
    """Return an entry `b` with these values by seed."""
    return Entry("b", lambda seed: {metric: values[seed], "quality.test": 0.9})


def test_the_faster_of_two_is_better_whichever_is_first_and_the_interval_is_of_the_log_ratio() -> None:
    pair = [Entry("a", steady(1000, key="a")), Entry("b", steady(2000, key="b"))]
    verdict = found(answers(results(pair)), "a", "b")
    assert verdict.outcome is Outcome.BETTER
    assert verdict.is_robust
    interval = present(verdict.interval)
    assert interval.low < math.log(0.5) < interval.high < 0
    assert interval.n == len(verdict.differences) == 10
    assert found(answers(results(pair[::-1])), "b", "a").outcome is Outcome.WORSE


def test_more_accuracy_is_better_and_more_loss_is_worse() -> None:
    good, bad = steady(quality=0.9, key="a"), steady(quality=0.8, key="b")
    assert outcome(results([Entry("a", good), Entry("b", bad)]), "quality") is Outcome.BETTER
    losses = [Entry(name, draw, mode="min", metric="validation_loss") for name, draw in (("a", good), ("b", bad))]
    assert outcome(results(losses), "quality") is Outcome.WORSE


def test_a_difference_far_within_the_margin_is_equivalent_and_a_sure_one_is_called_different_too() -> None:
    assert outcome(results([Entry("a", steady(1000, key="a")), Entry("b", steady(1000, key="b"))])) is Outcome.EQUIVALENT
    sure = results([Entry("a", steady(1000, spread=0.001, key="a")), Entry("b", steady(1010, spread=0.001, key="b"))])
    assert outcome(sure) is Outcome.EQUIVALENT_THOUGH_DIFFERENT


def test_a_wide_spread_is_undecided_and_says_how_many_seeds_a_new_experiment_needs() -> None:
    made = answers(results([Entry("a", steady(1000, spread=0.1, key="a")), Entry("b", steady(1000, spread=0.1, key="b"))]))
    verdict = found(made, "a", "b")
    assert verdict.outcome is Outcome.UNDECIDED
    assert present(verdict.seeds_to_decide) > 10
    (line,) = [line for line in made.summary if "Time" in line]
    assert f"a new experiment with about {verdict.seeds_to_decide} seeds" in line


def test_below_ten_seeds_nothing_is_judged_however_large_the_difference() -> None:
    made = answers(results([Entry("a", steady(10, key="a")), Entry("b", steady(1000, key="b"))], seeds=range(9)))
    verdict = found(made, "a", "b")
    assert verdict.outcome is Outcome.NOT_JUDGED
    assert verdict.reason == "9 seeds planned for both, and a verdict needs 10"
    assert present(verdict.interval).high < 0
    assert not verdict.sensitivities
    assert "No verdicts: 9 seeds planned" in made.summary[0]
    assert len(made.summary) == 1
    more = answers(results([Entry("a", steady(10, key="a")), Entry("b", steady(1000, key="b"))]))  # control: one seed more
    assert found(more, "a", "b").outcome is Outcome.BETTER


def test_the_error_is_shared_by_the_family() -> None:
    pair = [Entry("a", steady(1000, key="a")), Entry("b", steady(2000, key="b"))]

    def confidence(**changes: Any) -> float:
        return present(found(answers(results(pair, seeds=range(20), **changes)), "a", "b").interval).confidence

    assert confidence() == pytest.approx(1 - 0.05 / 15)
    assert confidence(family_size=3) == pytest.approx(1 - 0.05 / 3)
    assert confidence(confidence=0.9) == pytest.approx(1 - 0.1 / 15)


def test_more_pairs_than_the_family_has_are_said_loudly_and_their_number_is_used() -> None:
    entries = [Entry(name, steady(1000, key=name)) for name in "abc"]
    made = answers(results(entries, family_size=2))
    assert present(found(made, "a", "b").interval).confidence == pytest.approx(1 - 0.05 / 3)
    assert any("THE FAMILY IS TOO SMALL" in limit for limit in made.limits)
    assert not any("FAMILY" in limit for limit in answers(results(entries)).limits)  # control: 15 are enough


def test_an_entry_named_twice_gives_the_noise_floor_and_is_in_no_family() -> None:
    entries = [
        Entry("a", steady(1000, key="a")),
        Entry("a", steady(1000, key="a2"), replicate=1),
        Entry("b", steady(2000, key="b")),
    ]
    made = answers(results(entries))
    noise = found(made, "a#2", "a")
    assert noise.is_noise
    assert present(noise.interval).confidence == pytest.approx(0.95)
    assert found(made, "a", "b").noise_floor == noise.interval
    assert [(row.one, row.other) for row in made.verdicts if row.question.name == "time"] == [("a", "b"), ("a#2", "a")]
    assert any("noise floor 0." in line for line in made.summary)
    assert not any("a#2" in line for line in made.summary)


def test_a_difference_that_equal_entries_have_too_is_said_to_be_no_larger_than_noise() -> None:
    entries = [
        Entry("a", steady(1000, key="a")),
        Entry("a", steady(2000, key="a2"), replicate=1),
        Entry("b", steady(1500, key="b")),
    ]
    made = answers(results(entries))
    assert found(made, "a", "b").outcome is Outcome.BETTER
    assert "no larger than the noise floor" in found(made, "a", "b").reason
    assert any("no larger than the noise floor" in line for line in made.summary)
    quiet = [*entries[:1], Entry("a", steady(1000, key="a2"), replicate=1), *entries[2:]]  # control
    assert not any("no larger" in line for line in answers(results(quiet)).summary)


def test_equal_entries_that_differ_are_warned_of() -> None:
    entries = [Entry("a", steady(1000, key="a")), Entry("a", steady(2000, key="a2"), replicate=1)]
    assert any("a#2 and a are the same and yet differ in time.jct" in limit for limit in answers(results(entries)).limits)


def test_one_seed_that_makes_the_verdict_is_named_and_it_is_not_robust() -> None:
    values = [950.0, 960.0, 955.0, 953.0, 957.0, 951.0, 958.0, 952.0, 959.0, 956.0]
    entry = Entry("a", lambda seed: {"time.jct": 1000.0, "quality.test": 0.9})
    robust = answers(results([entry, given([value - 100 for value in values])]))
    assert found(robust, "a", "b").is_robust
    made = answers(results([entry, given([*values[:9], 1400.0])]))
    verdict = found(made, "a", "b")
    assert not verdict.is_robust
    changing = [one for one in verdict.sensitivities if one.outcome is not verdict.outcome]

    assert "median" in {one.choice for one in verdict.sensitivities}
    assert "without seed 9" in {one.choice for one in changing}


def test_a_question_without_a_margin_can_differ_and_never_be_equivalent() -> None:
    same = [Entry(name, steady(key="same")) for name in "ab"]
    assert outcome(results(same, quality_margin=None), "quality") is Outcome.UNDECIDED
    other = [Entry("a", steady(quality=0.9, key="a")), Entry("b", steady(quality=0.5, key="b"))]
    assert outcome(results(other, quality_margin=None), "quality") is Outcome.BETTER


def test_a_zero_has_no_ratio_and_two_of_them_are_equal() -> None:
    def draw(zero: bool) -> Entry:
        return Entry("ab"[zero], lambda seed: {"waste.default.time": 0.0 if zero else 5.0}, mode="max")

    made = results([draw(False), draw(True)], questions={"waste": "waste.default.time"}, primary_metric="waste.default.time")
    (verdict,) = answers(made).verdicts
    assert verdict.outcome is Outcome.UNDECIDED
    assert "has no ratio" in verdict.reason
    zeros = results(
        [draw(True), Entry("c", draw(True).draw)], questions={"waste": "waste.default.time"}, primary_metric="waste.default.time"
    )
    (verdict,) = answers(zeros).verdicts
    assert verdict.outcome is Outcome.EQUIVALENT


def test_a_better_throughput_is_a_greater_one() -> None:
    def draw(rate: float) -> Metrics:
        return {"trials.per_second": rate}

    entries = [Entry("a", lambda seed: draw(2.0 + seed / 100)), Entry("b", lambda seed: draw(1.0 + seed / 100))]
    made = results(entries, questions={"rate": "trials.per_second"}, primary_metric="trials.per_second")
    assert outcome(made, "rate") is Outcome.BETTER
