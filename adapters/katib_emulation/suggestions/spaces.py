"""The search space as Katib's services read it, and the services `grid` and `random`. All numbers are strings in the Experiment.

`grid`: every combination once, in shuffled order; once all were given, any whose trial has not succeeded (as Optuna's sampler).

`random`: independent draws, with the distributions of Katib's hyperopt service and their peculiarities. A parameter with a step
(an integer always has one: 1) is drawn as `round(draw / step) * step`: values are multiples of the step, not of min + k * step;
both end points get half the mass of the others; and the result can leave [min, max].
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from katib_emulation.suggestions.results import Told


def stream(*parts: object) -> random.Random:
    """Return a generator that depends on all parts, and on nothing else."""
    return random.Random(derived(*parts))


def derived(*parts: object, bits: int = 64) -> int:
    """Return a number of `bits` bits that depends on all parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest, "big") >> (256 - bits)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an Experiment. Numbers are still text: what cannot be read fails where it is used, as in the services."""

    name: str
    type: str  # int | double | categorical | discrete
    minimum: str
    maximum: str
    step: str
    values: tuple[str, ...]
    distribution: str  # uniform | logUniform


def parameters_of(experiment: Mapping[str, Any]) -> list[Parameter]:
    """Return the parameters of an Experiment in their order."""
    return [_parameter(given) for given in experiment["spec"].get("parameters", ())]


def _parameter(given: Mapping[str, Any]) -> Parameter:
    space, kind = given["feasibleSpace"], given.get("parameterType", "")
    step = space.get("step", "")
    return Parameter(
        name=given.get("name", ""),
        type=kind,
        minimum=space.get("min", ""),
        maximum=space.get("max", ""),
        step=step or ("1" if kind == "int" else ""),
        values=tuple(space.get("list", ())),
        distribution=space.get("distribution", "uniform"),
    )


def grid_values(parameter: Parameter) -> Sequence[str]:
    """Return the values of a parameter in a grid.

    Raises:
        ValueError: a double without a step, or text that is no number.
    """
    if parameter.type == "int":
        return [str(i) for i in range(int(parameter.minimum), int(parameter.maximum) + 1, int(parameter.step))]
    if parameter.type == "double":
        if not parameter.step:
            raise ValueError(f"Param {parameter.name} step is nil; For discrete search space, all parameters must include step")
        low, high, step = float(parameter.minimum), float(parameter.maximum), float(parameter.step)
        if not step > 0:
            raise ValueError(f"Param {parameter.name} step must be above 0")
        values: list[float] = []
        while (value := low + len(values) * step) <= high:
            values.append(value)
        return [str(value) for value in values]
    return parameter.values


class Grid:
    """Suggestion `index` is the combination at that place of the shuffled grid."""

    def __init__(self, parameters: Sequence[Parameter], seed: str) -> None:
        self._parameters = parameters
        self._seed = seed

    @cached_property
    def _order(self) -> list[int]:
        order = list(range(self.size))
        stream(self._seed, "grid", 0).shuffle(order)
        return order

    @cached_property
    def _axes(self) -> list[Sequence[str]]:
        return [grid_values(parameter) for parameter in self._parameters]

    @property
    def size(self) -> int:
        """The number of combinations.

        Raises:
            ValueError: the space is no grid.
        """
        return math.prod(len(axis) for axis in self._axes)

    def suggest(self, index: int, told: Sequence[Told]) -> dict[str, str]:
        """Return the configuration that is given as number `index` (from 0).

        Raises:
            ValueError: the space is no grid, or empty.
        """
        if self.size == 0:
            raise ValueError("the grid has no combinations")
        if index < self.size:
            return self._configuration(self._order[index])
        ended = [trial.configuration for trial in told]
        left = [given for cell in self._order if (given := self._configuration(cell)) not in ended]
        return stream(self._seed, "grid", index).choice(left or [self._configuration(cell) for cell in self._order])

    def _configuration(self, cell: int) -> dict[str, str]:
        configuration = {}
        for parameter, axis in zip(reversed(self._parameters), reversed(self._axes), strict=True):
            cell, at = divmod(cell, len(axis))
            configuration[parameter.name] = axis[at]
        return {parameter.name: configuration[parameter.name] for parameter in self._parameters}


class RandomSearch:
    """Draws suggestion `index` from a stream of its own."""

    def __init__(self, parameters: Sequence[Parameter], seed: str) -> None:
        self._parameters = parameters
        self._seed = seed

    def suggest(self, index: int, told: Sequence[Told]) -> dict[str, str]:
        """Return the `index`-th configuration (from 0); results are of no account.

        Raises:
            ValueError: the space cannot be drawn from (text that is no number, a logarithm of 0, an empty list).
        """
        draws = stream(self._seed, "random", index)
        return {parameter.name: draw(parameter, draws) for parameter in self._parameters}


def draw(parameter: Parameter, draws: Random) -> str:
    """Return one value of the parameter as text.

    Raises:
        ValueError: the parameter cannot be drawn from.
    """
    if parameter.type in ("categorical", "discrete"):
        if not parameter.values:
            raise ValueError(f"parameter {parameter.name} has an empty list")
        return draws.choice(parameter.values)
    value = _number(parameter, draws)
    if parameter.step:
        step = float(parameter.step)
        value = round(value / step) * step
    return str(int(value)) if parameter.type == "int" else str(value)


def _number(parameter: Parameter, draws: Random) -> float:
    low, high = float(parameter.minimum), float(parameter.maximum)
    if parameter.distribution == "logUniform":
        return math.exp(draws.uniform(math.log(low), math.log(high)))
    return draws.uniform(low, high)
