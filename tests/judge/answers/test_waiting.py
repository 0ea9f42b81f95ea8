"""When a verdict may be made: once all planned seeds have ended, where these can show something at its error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from builders.made_results import Entry, results, steady, verdict_on
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.compute import answers

pytest.importorskip("scipy")


def verdict(absent: Sequence[int] = (), seeds: int = 20, **changes: Any) -> Verdict:
    """Return the verdict on time of two entries, the first of which was not run with some seeds."""
    entries = [Entry("a", steady(1000, key="a"), absent=absent), Entry("b", steady(2000, key="b"))]
    return verdict_on(answers(results(entries, seeds=range(seeds), **changes)))


def test_a_verdict_waits_for_all_seeds() -> None:
    found = verdict(absent=[19])
    assert (found.outcome, found.reason) == (Outcome.UNDECIDED, "19 of 20 planned seeds have ended in both")
    assert verdict().outcome is Outcome.BETTER  # control


def test_too_few_seeds_for_the_error_of_a_verdict_say_how_many_it_takes() -> None:
    found = verdict(seeds=10, family_size=30)
    assert found.outcome is Outcome.UNDECIDED
    assert "10 seeds can show nothing at the error of 0.0017" in found.reason
    assert found.reason.endswith("it takes 11")
