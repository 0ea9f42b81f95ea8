"""`grid`: every combination once, in shuffled order; after the last one the grid begins again, in another order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from katib_emulation.suggestions.parameters import Parameter, grid_values
from katib_emulation.suggestions.seeds import stream
from katib_emulation.suggestions.told import Told


class Grid:
    """Suggestion `index` is the combination at that place of the shuffled grid."""

    def __init__(self, parameters: Sequence[Parameter], seed: str) -> None:
        self._parameters = parameters
        self._seed = seed
        self._orders: dict[int, list[int]] = {}

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
        """Return the `index`-th configuration (from 0); results are of no account.

        Raises:
            ValueError: the space is no grid, or empty.
        """
        size = self.size
        if size == 0:
            raise ValueError("the grid has no combinations")
        round_, place = divmod(index, size)
        if round_ not in self._orders:
            order = list(range(size))
            stream(self._seed, "grid", round_).shuffle(order)
            self._orders = {round_: order}
        cell = self._orders[round_][place]
        configuration = {}
        for parameter, axis in zip(reversed(self._parameters), reversed(self._axes), strict=True):
            cell, at = divmod(cell, len(axis))
            configuration[parameter.name] = axis[at]
        return {parameter.name: configuration[parameter.name] for parameter in self._parameters}
