"""`random`: independent draws, with the distributions of Katib's hyperopt service and their peculiarities.

A parameter with a step (an integer always has one: 1) is drawn as `round(draw / step) * step`: values are multiples of the step,
not of min + k * step; both end points get half the mass of the others; and the result can leave [min, max]. `normal` and
`logNormal` have their middle in the interval's middle and three standard deviations to each end, and are not bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from katib_emulation.suggestions.parameters import Parameter
from katib_emulation.suggestions.seeds import stream
from katib_emulation.suggestions.told import Told


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
    if parameter.type not in ("int", "double"):
        raise ValueError(f"parameter {parameter.name} has no usable type: {parameter.type!r}")
    value = _number(parameter, draws)
    if parameter.step:
        step = float(parameter.step)
        value = round(value / step) * step
    return str(int(value)) if parameter.type == "int" else str(value)


def _number(parameter: Parameter, draws: Random) -> float:
    low, high = float(parameter.minimum), float(parameter.maximum)
    logarithmic = parameter.distribution in ("logUniform", "logNormal")
    if logarithmic:
        low, high = math.log(low), math.log(high)
    if parameter.distribution in ("normal", "logNormal"):
        value = draws.gauss((low + high) / 2, (high - low) / 6)
    else:
        value = draws.uniform(low, high)
    return math.exp(value) if logarithmic else value
