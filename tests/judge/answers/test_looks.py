"""When a verdict may be made: once all planned seeds have ended, or at a look that the plan declared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builders.made_results import Entry, results, steady, verdict_on
from builders.present import present
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.compute import answers

pytest.importorskip("scipy")


def verdict(looks: Sequence[int], absent: Sequence[int] = (), seeds: int = 20) -> Verdict:
    """Return the verdict on time of two entries, the first of which was not run with some seeds."""
    entries = [Entry("a", steady(1000, key="a"), absent=absent), Entry("b", steady(2000, key="b"))]
    return verdict_on(answers(results(entries, seeds=range(seeds), looks=list(looks))))


@pytest.mark.parametrize(
    ("looks", "absent", "seeds", "reason"),
    [
        ([], [19], 20, "19 of 20 planned seeds have ended in both"),
        ([10, 20], [4], 20, "9 of the 10 seeds of the first look have ended in both"),
        ([20], [], 12, "the first look is at 20 seeds, and 12 are planned"),
    ],
    ids=["the last seed", "a seed of the look", "more seeds than are planned"],
)
def test_a_verdict_waits_for_all_seeds_or_for_those_of_a_look(
    looks: list[int], absent: list[int], seeds: int, reason: str
) -> None:
    found = verdict(looks, absent, seeds)
    assert (found.outcome, found.reason) == (Outcome.UNDECIDED, reason)


def test_a_look_judges_by_its_own_seeds_only() -> None:
    found = verdict([12, 20], absent=[15])
    assert found.outcome is Outcome.BETTER
    assert present(found.interval).n == 12
    assert [row.reason for row in found.differences].count("not used: the look is at 12 seeds") == 7
    assert present(verdict([12, 20]).interval).n == 20


def test_two_looks_are_stricter_than_none() -> None:
    assert verdict([]).outcome is Outcome.BETTER
    one, two = (present(verdict(looks).interval) for looks in ([], [10, 20]))
    assert two.confidence > one.confidence
    assert two.high - two.low >= one.high - one.low


def test_a_look_with_too_few_seeds_for_its_error_says_how_many_it_takes() -> None:
    found = verdict([10, 20], absent=[15])
    assert found.outcome is Outcome.UNDECIDED
    assert "10 seeds can show nothing at the error of 0.0017" in found.reason
    assert found.reason.endswith("it takes 11")
