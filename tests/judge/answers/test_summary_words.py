"""The summary says no more than the verdicts: what waits is not alike, what is compared elsewhere is not equivalent."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from builders.made_results import Draw, Entry, Metrics, results, steady
from builders.present import present
from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.answers.compute import answers
from tuneoff.record.metric_value import Kind, known

pytest.importorskip("scipy")


def test_what_waits_for_seeds_is_not_called_alike() -> None:
    entries = [Entry("a", steady(1000, key="a"), absent=[9]), Entry("b", steady(2000, key="b"))]
    (time, _) = answers(results(entries)).summary
    assert "not decided: a and b: 9 of 10 planned seeds have ended in both" in time
    assert "equivalent" not in time


def test_what_was_tested_and_stays_open_is_not_decided() -> None:
    entries = [Entry("a", steady(1000, spread=0.5, key="a")), Entry("b", steady(1000, spread=0.5, key="b"))]
    assert "not decided: a and b: the interval holds 0" in answers(results(entries)).summary[0]


def test_seeds_that_decide_several_pairs_are_the_most_that_one_needs() -> None:
    entries = [Entry(name, steady(1000, spread=spread, key=name)) for name, spread in (("a", 0.05), ("b", 0.08), ("c", 0.12))]
    found = answers(results(entries))
    needed = [one.seeds_to_decide for one in found.verdicts if one.question.name == "time"]
    assert len({*needed}) == 3
    assert f"a new experiment with at most about {max(filter(None, needed))} seeds" in found.summary[0]
    assert "with about" in answers(results(entries[1:])).summary[0]


def test_a_pair_that_is_compared_elsewhere_is_not_called_equivalent_here() -> None:
    entries = [
        *(Entry(name, steady(jct, spread=0.001, key=name)) for name, jct in (("a", 1000), ("b", 3000))),
        *(Entry(name, steady(), sampler="default", same_as="random") for name in ("a", "b")),
        Entry("c", steady(1000, spread=0.001, key="c"), sampler="default"),
    ]
    own = [line for line in answers(results(entries)).summary if line.startswith("Time (time.jct), default sampler")]
    assert any("equivalent: a and c" in line for line in own)
    assert not any("a and b" in line or "a, b" in line for line in own)


@pytest.mark.parametrize(("kind", "is_told"), [("estimated", True), ("measured", False)])
def test_a_claim_on_estimated_values_says_so(kind: Kind, is_told: bool) -> None:
    def energy(joules: float, key: str) -> Draw:
        draw = steady(joules, key=key)

        def drawn(seed: int) -> Metrics:
            found = draw(seed)["time.jct"]
            assert isinstance(found, float)
            return {"energy.job": known(found, "J", kind=kind), "time.jct": 1000.0}

        return drawn

    entries = [Entry(name, energy(joules, name)) for name, joules in (("a", 10), ("b", 20), ("c", 10))]
    made = answers(results(entries, questions={"time": "time.jct", "energy": "energy.job"}))
    told = [line for line in made.summary if line.startswith("Energy")]
    assert any("a needs less energy than b" in line for line in told)
    assert any("equivalent: a and c" in line for line in told)
    assert {"estimated by a model" in line for line in told} == {is_told}
    assert not any("estimated" in line for line in made.summary if line.startswith("Time"))


def test_no_new_experiment_is_advised_that_is_smaller_than_the_one_that_could_not_decide() -> None:
    """By a spread of 0.042 some 18 seeds find the margin of 5 %: 20 decide nothing where the difference is half of it."""
    order = [7 * place % 20 for place in range(20)]
    logs = [0.025 + 0.042 * NormalDist().inv_cdf((place + 0.5) / 20) for place in order]
    entries = [
        Entry("a", lambda seed: {"time.jct": 1000 * math.exp(logs[seed]), "quality.test": 0.9}),
        Entry("b", lambda seed: {"time.jct": 1000.0, "quality.test": 0.9}),
    ]
    (time, _) = answers(results(entries, seeds=range(20))).verdicts
    assert time.outcome is Outcome.UNDECIDED
    assert present(time.seeds_to_decide) > 20
