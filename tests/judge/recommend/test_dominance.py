"""Dominance is of verdicts alone, and of a pair alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.made_choices import verdict
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.recommend.recommendation import Dominance, dominances, front

LABELS = ("a", "b", "c", "d")
QUESTIONS = ("quality", "time", "energy")
OUTCOMES = st.sampled_from(list(Outcome))
NOTHING_SHOWN = (Outcome.UNDECIDED, Outcome.NOT_JUDGED)


def pairs(found: Sequence[Dominance]) -> set[tuple[str, str]]:
    return {(one.one, one.other) for one in found}


@st.composite
def verdict_sets(draw: st.DrawFn) -> list[Verdict]:
    """Return any verdicts of all pairs on all questions, some of them without figures."""
    return [
        verdict(one, other, draw(OUTCOMES), of, figures=draw(st.integers(0, 5)) > 0)
        for one, other in combinations(LABELS, 2)
        for of in QUESTIONS
    ]


def test_better_in_one_question_and_equivalent_in_the_others_dominates() -> None:
    verdicts = [verdict("a", "b", Outcome.BETTER, "time"), verdict("a", "b", Outcome.EQUIVALENT, "quality")]
    (found,) = dominances(verdicts, ("a", "b"), {})
    assert (found.one, found.other) == ("a", "b")
    assert found.better == ("time",)
    assert found.as_good == ("quality",)
    assert front(("a", "b"), [found]) == ["a"]


def test_a_verdict_counts_from_both_sides() -> None:
    assert pairs(dominances([verdict("a", "b", Outcome.WORSE)], ("a", "b"), {})) == {("b", "a")}


@pytest.mark.parametrize("outcome", [Outcome.UNDECIDED, Outcome.NOT_JUDGED, Outcome.WORSE])
def test_what_is_not_shown_to_be_as_good_is_in_the_way(outcome: Outcome) -> None:
    verdicts = [verdict("a", "b", Outcome.BETTER, "time"), verdict("a", "b", outcome, "quality")]
    assert dominances(verdicts, ("a", "b"), {}) == []


@pytest.mark.parametrize("outcome", [Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT, *NOTHING_SHOWN])
def test_without_a_better_there_is_no_dominance(outcome: Outcome) -> None:
    assert dominances([verdict("a", "b", outcome)], ("a", "b"), {}) == []


def test_a_question_without_figures_says_nothing_and_is_named() -> None:
    verdicts = [verdict("a", "b", Outcome.BETTER), verdict("a", "b", Outcome.NOT_JUDGED, "energy", figures=False)]
    (found,) = dominances(verdicts, ("a", "b"), {})
    assert found.without_figures == ("energy",)


def test_who_fails_more_often_dominates_nobody() -> None:
    verdicts = [verdict("a", "b", Outcome.BETTER)]
    assert dominances(verdicts, ("a", "b"), {"a": 1, "b": 0}) == []
    assert pairs(dominances(verdicts, ("a", "b"), {"a": 1, "b": 1})) == {("a", "b")}


def test_a_cycle_leaves_its_members_on_the_front() -> None:
    cycle = [verdict("a", "b", Outcome.BETTER), verdict("b", "c", Outcome.BETTER), verdict("c", "a", Outcome.BETTER)]
    found = dominances([*cycle, verdict("a", "d", Outcome.BETTER)], LABELS, {})
    assert front(LABELS, found) == ["a", "b", "c"]


@given(verdict_sets())
def test_somebody_is_always_on_the_front(verdicts: list[Verdict]) -> None:
    assert front(LABELS, dominances(verdicts, LABELS, {}))


@given(verdict_sets(), OUTCOMES)
def test_a_further_adapter_changes_no_dominance_between_the_others(verdicts: list[Verdict], outcome: Outcome) -> None:
    further = [verdict(label, "e", outcome, of) for label in LABELS for of in QUESTIONS]
    before = pairs(dominances(verdicts, LABELS, {}))
    after = pairs(dominances([*verdicts, *further], (*LABELS, "e"), {}))
    assert {pair for pair in after if "e" not in pair} == before


@given(verdict_sets(), st.sampled_from(NOTHING_SHOWN))
def test_an_undecided_adapter_changes_nothing_and_is_on_the_front(verdicts: list[Verdict], outcome: Outcome) -> None:
    further = [verdict(label, "e", outcome, of) for label in LABELS for of in QUESTIONS]
    before = dominances(verdicts, LABELS, {})
    after = dominances([*verdicts, *further], (*LABELS, "e"), {})
    assert pairs(after) == pairs(before)
    assert front((*LABELS, "e"), after) == [*front(LABELS, before), "e"]


@given(verdict_sets())
def test_every_dominance_rests_on_a_better_and_on_no_worse(verdicts: list[Verdict]) -> None:
    for found in dominances(verdicts, LABELS, {}):
        assert found.better
        outcomes = {
            one.question.name: one.outcome_for(found.one) for one in verdicts if {one.one, one.other} == {found.one, found.other}
        }
        assert {outcomes[name] for name in found.better} == {Outcome.BETTER}
        assert {outcomes[name] for name in found.as_good}.isdisjoint((Outcome.WORSE, *NOTHING_SHOWN))


@given(verdict_sets(), st.permutations(LABELS))
def test_the_order_of_labels_and_verdicts_changes_nothing(verdicts: list[Verdict], labels: list[str]) -> None:
    assert pairs(dominances(verdicts[::-1], labels, {})) == pairs(dominances(verdicts, LABELS, {}))
    assert set(front(labels, dominances(verdicts, labels, {}))) == set(front(LABELS, dominances(verdicts, LABELS, {})))
