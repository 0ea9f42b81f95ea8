"""The summary says no more than the verdicts: what waits is not alike, what is compared elsewhere is not equivalent."""

from __future__ import annotations

import pytest

from answers.made_results import Entry, results, steady
from tuneoff.answers.all import answers

pytest.importorskip("scipy")


def test_what_waits_for_seeds_is_not_called_alike() -> None:
    entries = [Entry("a", steady(1000, key="a"), absent=[9]), Entry("b", steady(2000, key="b"))]
    (time, _) = answers(results(entries)).summary
    assert "nothing is decided between a and b: 9 of 10 planned seeds have ended in both" in time
    assert "not distinguishable" not in time


def test_what_was_tested_and_stays_open_is_not_distinguishable() -> None:
    entries = [Entry("a", steady(1000, spread=0.5, key="a")), Entry("b", steady(1000, spread=0.5, key="b"))]
    assert "a and b are not distinguishable" in answers(results(entries)).summary[0]


def test_the_seeds_of_a_look_are_told_and_not_those_that_have_ended_since() -> None:
    entries = [Entry("a", steady(1000, key="a"), absent=[15]), Entry("b", steady(2000, key="b"))]
    summary = answers(results(entries, seeds=range(20), looks=[12, 20])).summary
    assert summary[0].startswith("Time (time.jct), random search, 12 seeds: a is faster than b")


def test_a_pair_that_is_compared_elsewhere_is_not_called_equivalent_here() -> None:
    entries = [
        *(Entry(name, steady(jct, spread=0.001, key=name)) for name, jct in (("a", 1000), ("b", 3000))),
        *(Entry(name, steady(), sampler="default", same_as="random") for name in ("a", "b")),
        Entry("c", steady(1000, spread=0.001, key="c"), sampler="default"),
    ]
    own = [line for line in answers(results(entries)).summary if line.startswith("Time (time.jct), default sampler")]
    assert any("c are equivalent" in line for line in own)
    assert not any("a and b" in line or "a, b" in line for line in own)
