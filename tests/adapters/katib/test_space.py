"""What Katib's algorithms draw from the translated space, against core's distributions; drawn here as their services draw."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.spaces import NUMBERS, SPACE, spaces, units
from tuneoff.base.space import Dimension, Float, SearchSpace, points, stepped
from tuneoff.errors import ExperimentError
from tuneoff.experiment.strategies import sample_distinct
from tuneoff.experiment.translation import LIST_INDEX, ListTranslation, SpaceTranslation
from tuneoff.trust.space_test.judge import Sample, judge
from tuneoff_adapters.katib.space import GRID, LOG_ONLY, NUMBERS_ONLY, UNIFORM_ONLY, KatibSpace

pytestmark = pytest.mark.slow

DRAWS = 4000
SEARCHING = ("random", "tpe", "multivariate-tpe", "bayesianoptimization", "cmaes", "sobol")


def space_for(algorithm: str) -> SearchSpace:
    return NUMBERS if algorithm in NUMBERS_ONLY else SPACE


def draw(parameter: dict[str, Any], algorithm: str, unit: float) -> str:
    """Return the text that an algorithm's service makes of a number in [0, 1]: its own idea of a distribution, not ours."""
    feasible = parameter["feasibleSpace"]
    if parameter["parameterType"] == "categorical":
        return str(feasible["list"][min(int(unit * len(feasible["list"])), len(feasible["list"]) - 1)])
    low, high = float(feasible["min"]), float(feasible["max"])
    if parameter["parameterType"] == "int":  # hyperopt's quniform
        return str(round(low + unit * (high - low)))
    is_log = algorithm in LOG_ONLY or (feasible["distribution"] == "logUniform" and algorithm not in UNIFORM_ONLY)
    if not is_log:
        return repr(low + unit * (high - low))
    return repr(math.exp(math.log(low) + unit * (math.log(high) - math.log(low))))


@pytest.mark.parametrize("algorithm", SEARCHING)
def test_what_an_algorithm_draws_has_core_s_distributions(algorithm: str) -> None:
    space, generator = space_for(algorithm), random.Random(5)
    katib = KatibSpace(SpaceTranslation(space), algorithm)
    drawn = [
        katib.decode({entry["name"]: draw(entry, algorithm, generator.random()) for entry in katib.parameters()})
        for _ in range(DRAWS)
    ]
    assert judge(space, Sample(by_seed={0: drawn})).verdict == "accepted"


def test_katibs_own_integer_would_be_rejected() -> None:
    parameter = {"parameterType": "int", "feasibleSpace": {"min": "1", "max": "5", "step": "1"}}
    generator = random.Random(5)
    drawn = [{"x": int(draw(parameter, "random", generator.random()))} for _ in range(DRAWS)]
    space = SearchSpace({"x": stepped(1, 5, 1, integer=True)})
    assert judge(space, Sample(by_seed={0: drawn})).verdict == "rejected"


@pytest.mark.parametrize("algorithm", SEARCHING)
def test_both_ends_of_every_parameter_are_reached_and_lie_inside(algorithm: str) -> None:
    space = space_for(algorithm)
    katib = KatibSpace(SpaceTranslation(space), algorithm)
    for unit, end in ((0.0, 0), (1.0, -1)):
        configuration = katib.decode({entry["name"]: draw(entry, algorithm, unit) for entry in katib.parameters()})
        space.check(configuration)
        for name, dimension in space.searched.items():
            if isinstance(dimension, Float):
                assert configuration[name] == pytest.approx((dimension.low, dimension.high)[end])
            else:
                assert configuration[name] == points(dimension)[end]


def texts_of(katib: KatibSpace, configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts with which Katib would name a configuration."""
    return {name: katib.dimensions[name].encode(value) for name, value in katib.translation.encode(configuration).items()}


@given(data=st.data(), algorithm=st.sampled_from(SEARCHING))
def test_a_configuration_survives_the_way_to_katib_and_back(data: st.DataObject, algorithm: str) -> None:
    space = data.draw(spaces())
    katib = KatibSpace(SpaceTranslation(space), algorithm)
    pod = KatibSpace.from_json(json.loads(json.dumps(katib.to_json())))
    configuration = space.from_units(data.draw(units(space)))
    back = pod.decode({**texts_of(katib, configuration), "another": "x"})
    space.check(back)
    for name, dimension in space:
        if isinstance(dimension, Float):
            slack = 1e-9 * max(abs(dimension.low), abs(dimension.high), 1e-300)
            assert abs(back[name] - configuration[name]) <= slack
        else:
            assert back[name] == configuration[name]


def test_no_parameter_is_an_integer_and_every_number_is_a_text() -> None:
    for algorithm in SEARCHING:
        for parameter in KatibSpace(SpaceTranslation(space_for(algorithm)), algorithm).parameters():
            assert parameter["parameterType"] in ("double", "categorical")
            values = parameter["feasibleSpace"]
            assert all(isinstance(value, str) for name, value in values.items() if name != "list")
            assert "step" not in values


def test_a_logarithmic_bound_that_the_service_would_raise_is_drawn_by_its_logarithm() -> None:
    low = SearchSpace({"x": Float(low=1e-12, high=1.0, log=True)})
    kinds = {
        algorithm: KatibSpace(SpaceTranslation(low), algorithm).parameters()[0]["feasibleSpace"]
        for algorithm in ("random", "multivariate-tpe")
    }
    assert kinds["random"] == {"min": "1e-12", "max": "1.0", "distribution": "logUniform"}
    assert kinds["multivariate-tpe"] == {"min": repr(math.log(1e-12)), "max": "0.0", "distribution": "uniform"}


def test_a_list_is_one_category_per_configuration() -> None:
    configurations = sample_distinct(SPACE, 5, seed=2)
    katib = KatibSpace(ListTranslation(configurations), GRID)
    (parameter,) = katib.parameters()
    assert (parameter["name"], parameter["parameterType"]) == (LIST_INDEX, "categorical")
    assert parameter["feasibleSpace"]["list"] == ["0", "1", "2", "3", "4"]
    pod = KatibSpace.from_json(json.loads(json.dumps(katib.to_json())))
    assert [pod.decode({LIST_INDEX: text}) for text in parameter["feasibleSpace"]["list"]] == configurations


@pytest.mark.parametrize(
    ("algorithm", "dimension", "text", "words"),
    [
        ("random", Float(low=-1.0, high=3.0), None, "x is missing"),
        ("random", Float(low=-1.0, high=3.0), "much", "must be a number, but Katib gave 'much'"),
        ("sobol", Float(low=-1.0, high=3.0), "nan", "must be finite"),
        ("sobol", Float(low=-1.0, high=3.0), "3.1", "must lie in"),
        ("bayesianoptimization", Float(low=-1.0, high=3.0), "10.5", "must lie in"),
        ("bayesianoptimization", SPACE.dimensions["integer"], "-1", "must lie in"),
        ("random", SPACE.dimensions["integer"], "4.2", "must lie in"),
        ("cmaes", SPACE.dimensions["integer"], "-0.8", "must lie in"),
        (GRID, SPACE.dimensions["integer"], "4", "must be an integer in"),
        ("cmaes", Float(low=1e-3, high=1.0, log=True), "1e400", "must be finite"),
        ("cmaes", Float(low=1e-3, high=1.0, log=True), "710", "must lie inside"),
    ],
)
def test_a_text_outside_is_refused_and_never_moved_to_an_end(
    algorithm: str, dimension: Dimension, text: str | None, words: str
) -> None:
    katib = KatibSpace(SpaceTranslation(SearchSpace({"x": dimension})), algorithm)
    with pytest.raises(ExperimentError, match=words):
        katib.decode({} if text is None else {"x": text})
