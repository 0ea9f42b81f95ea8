"""Options of samplers, as an adapter's offers declare them."""

from __future__ import annotations

from typing import Any

import pytest

from builders.specs import make_spec
from tuneoff.adapter import Capabilities, Offer, Option
from tuneoff.base.space import Categorical, Constant, Float, IntegerLog, SearchSpace, stepped
from tuneoff.experiment.spec import RunSpec, Strategy
from tuneoff.experiment.strategies import sampler_refusal

COUNT = Option(type="integer", least=1, most=99)
WIDTH = Option(type="number", above=0)
CAPABILITIES = Capabilities(
    framework="none",
    samplers={
        "tpe": Offer(options={"count": COUNT, "width": WIDTH, "joint": Option(type="flag")}),
        "gp": Offer(ordered_dimensions=2),
        "listing": Offer(most_points=1000),
        "coarse": Offer(least_width=1e-3),
        "once": Offer(repeats=False),
    },
)
NUMBER, ORDERED = Float(low=0.0, high=1.0), Categorical(choices=(1, 2), ordered=True)


def run_spec(sampler: str, space: dict[str, Any] | None = None, **options: Any) -> RunSpec:
    strategy = Strategy(name=sampler, options=options)
    return make_spec("toy", sampler=strategy, search_space=SearchSpace(space or {"x": NUMBER}), trials=4, epochs=1)


@pytest.mark.parametrize(
    ("option", "right", "wrong", "text"),
    [
        (COUNT, (1, 99), (0, 100, 1.0, True, "1", None), "an integer >= 1 and <= 99"),
        (WIDTH, (1, 0.5), (0, -1.0, float("nan"), float("inf"), True, "1"), "a number > 0"),
        (Option(type="number"), (0, -2.5), (None, False), "a number"),
        (Option(type="flag"), (True, False), (0, 1, "true"), "true or false"),
    ],
)
def test_an_option_admits_its_type_within_its_bounds(
    option: Option, right: tuple[Any, ...], wrong: tuple[Any, ...], text: str
) -> None:
    assert [value for value in right if not option.admits(value)] == []
    assert [value for value in wrong if option.admits(value)] == []
    assert option.text == text


def test_declared_options_are_not_refused_and_an_unknown_one_is_named_with_the_nearest_and_all() -> None:
    assert sampler_refusal(run_spec("tpe", count=5, width=1, joint=True), CAPABILITIES) is None
    text = "sampler 'tpe' of adapter 'toy' has no option 'cout'; did you mean 'count'?; it has: count, width, joint"
    assert sampler_refusal(run_spec("tpe", count=5, cout=1), CAPABILITIES) == text
    assert (sampler_refusal(run_spec("gp", seed=1), CAPABILITIES) or "").endswith("has no option 'seed'; it has none")


@pytest.mark.parametrize(
    ("sampler", "fits", "not_"),
    [
        (
            "listing",
            {"x": stepped(1, 1000, 1, integer=True), "y": IntegerLog(low=1, high=10**9)},
            (
                "w",
                stepped(0, 2000, 2, integer=True),
                "at most 1000, but w has 1001; use a larger step, a float, or another sampler",
            ),
        ),
        ("gp", {"x": NUMBER, "size": ORDERED}, ("size", Constant(value=3), "needs at least 2 numeric or ordered")),
        (
            "coarse",
            {"x": NUMBER, "step": stepped(0, 1e-4, 1e-5, integer=False)},
            (
                "y",
                Float(low=1e-4, high=1e-3, log=True),
                "needs `high - low >= 0.001` of a float, but y has 0.0009; use other units",
            ),
        ),
        (
            "once",
            {"x": stepped(1, 4, 1, integer=True)},
            ("x", stepped(1, 3, 1, integer=True), "the search space has 3, fewer than the 4 trials"),
        ),
    ],
)
def test_a_sampler_gets_no_space_that_it_cannot_draw_from(sampler: str, fits: dict[str, Any], not_: tuple[str, Any, str]) -> None:
    assert sampler_refusal(run_spec(sampler, fits), CAPABILITIES) is None
    name, dimension, text = not_
    assert text in (sampler_refusal(run_spec(sampler, {**fits, name: dimension}), CAPABILITIES) or "")
