"""Checks of configurations and the search space, on records made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import binom

from builders.check_evidence import SUBJECT, begun, evidence, finding, made
from tuneoff.base.findings import not_applicable, out_of_reach
from tuneoff.capabilities import Offer
from tuneoff.experiment.strategies import draws
from tuneoff.record.events import schema
from tuneoff.trust.check import specs
from tuneoff.trust.check.checks.space import _at_most
from tuneoff.trust.check.evidence import AdapterEvidence, Drawn
from tuneoff.trust.check.planned_runs import planned_runs


def test_a_configuration_that_changed_on_its_way_is_seen() -> None:
    def events(received: dict[str, Any]) -> list[schema.Event]:
        return [
            schema.TrialSubmitted(seq=0, t=0, trial="t0", configuration={"level": 1}),
            begun("t0", configuration=received),
        ]

    assert finding("configurations.received", evidence(made("honest-max", events=events({"level": 1})))).verdict == "passed"
    for changed in ({"level": 1.0}, {"level": 2}, {}):
        given = evidence(made("honest-max", events=events(changed)))
        assert finding("configurations.received", given).verdict == "failed", changed


def test_given_configurations_are_counted_with_repetitions() -> None:
    spec = specs.listed(specs.sound(2))
    one, two = spec.configurations
    submissions = {"passed": [one, two], "failed": [one, one]}
    for verdict, configurations in submissions.items():
        events = [
            schema.TrialSubmitted(seq=n, t=n, trial=f"t{n}", configuration=dict(item)) for n, item in enumerate(configurations)
        ]
        assert finding("configurations.listed", evidence(made("honest-max", spec=spec, events=events))).verdict == verdict


def test_a_sampler_that_is_not_offered_has_one_reason_everywhere() -> None:
    bare = replace(SUBJECT.capabilities, pruners={"scripted": Offer()})
    absent = planned_runs(bare)["scripted"].absence(bare)
    assert absent == out_of_reach("sampler 'fixed' is not offered (not listed)")
    listed = finding("configurations.listed", evidence(made("honest-max", spec=specs.drawn(8))))
    assert listed == not_applicable(absent.text)


SPACE_CHECKS = ("space.inside", "space.bounds-reached", "space.ends-not-starved")


def space_evidence(change: Callable[[dict[str, Any], int], None]) -> AdapterEvidence:
    spec = specs.drawn(8)
    configurations = []
    for number, configuration in zip(range(1000), draws(spec.search_space, 3), strict=False):
        change(configuration, number)
        configurations.append(configuration)
    run = made("random-1-workers-1", spec=spec)
    return replace(evidence(run), drawn=Drawn(source="draw", configurations=configurations))


def outside(configuration: dict[str, Any], number: int) -> None:
    configuration["depth"] += 3 * (number == 500)


def never_the_upper(configuration: dict[str, Any], number: int) -> None:
    configuration["depth"] = min(configuration["depth"], 2)


def half_at_the_ends(configuration: dict[str, Any], number: int) -> None:
    configuration["depth"] = (1, 2, 2, 3)[number % 4]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda configuration, number: None, []),
        (outside, ["space.inside"]),
        (lambda configuration, number: configuration.update(depth=float(configuration["depth"])), ["space.inside"]),
        (lambda configuration, number: configuration.update(more=1), ["space.inside"]),
        (never_the_upper, ["space.bounds-reached"]),
        (half_at_the_ends, ["space.ends-not-starved"]),
    ],
)
def test_a_wrong_space_fails_in_one_check(change: Callable[[dict[str, Any], int], None], wrong: list[str]) -> None:
    given = space_evidence(change)
    found = [name for name in SPACE_CHECKS if finding(name, given).verdict != "passed"]
    if wrong == ["space.inside"] and found != wrong:  # other types are other values, to all three
        assert "space.inside" in found
    else:
        assert found == wrong


def test_a_draw_that_ends_outside_the_space_is_seen() -> None:
    given = space_evidence(lambda configuration, number: None)
    assert given.drawn is not None
    given = replace(given, drawn=replace(given.drawn, problem="4 is none of the 3 points"))
    assert finding("space.inside", given).verdict == "failed"


@pytest.mark.parametrize(("count", "draws", "share"), [(0, 10, 0.3), (250, 1000, 1 / 3), (1000, 1000, 0.5)])
def test_the_binomial_tail_is_exact(count: int, draws: int, share: float) -> None:
    assert _at_most(count, draws, share) == pytest.approx(binom.cdf(count, draws, share), rel=1e-9)
