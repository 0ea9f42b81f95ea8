"""Core's native dimensions as Katib parameters that each algorithm draws exactly, and the way back from a pod's texts.

Katib's own integers are not used: their services draw quantized floats, whose two end points get half of their share. What
varies along a line has an axis here, a real interval with a uniform or log-uniform variable, which becomes a `double`:

- as it is, where the algorithm draws that distribution;
- by its logarithm, where the algorithm draws uniformly whatever `distribution` says (cmaes, sobol);
- by z in [1, 10] with log10(z) as the position on the axis, where the algorithm draws every double log-uniformly
  (bayesianoptimization).

What is drawn by its index is the nearest integer to a uniform variable in [-1/2, size - 1/2]. Unordered choices, and the
index of a list, are categories named "0", "1", ...
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tuneoff.base.space import SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.experiment.translation import ListTranslation, Native, NativeFloat, NativeIndex, SpaceTranslation

GRID = "grid"  # visits each category once; serves lists alone
UNIFORM_ONLY = ("cmaes", "sobol")
LOG_ONLY = ("bayesianoptimization",)
NUMBERS_ONLY = UNIFORM_ONLY
LEAST_LOG = {"multivariate-tpe": 1e-10}  # a lower `min` is raised to this, silently

Warp = Literal["none", "logarithm", "decade"]
_DECADE = 10.0
_TOLERANCE = 1e-9  # a service's own exp(log(bound)) may miss the bound by rounding, never by more


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedParameter:
    """A dimension with an order, as a Katib `double`: a real variable in [low, high], uniform, or log-uniform."""

    kind: Native
    low: float
    high: float
    log: bool
    warp: Warp

    def parameter(self, name: str) -> dict[str, Any]:
        """Return the entry of `spec.parameters`; all its numbers are texts."""
        low, high = (self._to_katib(bound) for bound in (self.low, self.high))
        is_log = self.warp == "decade" or (self.log and self.warp == "none")
        space = {"min": repr(low), "max": repr(high), "distribution": "logUniform" if is_log else "uniform"}
        return {"name": name, "parameterType": "double", "feasibleSpace": space}

    def decode(self, text: str) -> float | int:
        """Return the native value for the text that Katib put into the pod's command.

        Raises:
            ExperimentError: it is not a number inside.
        """
        value = _number(text)
        if self.warp == "logarithm":
            try:
                value = math.exp(value)
            except OverflowError as error:
                raise ExperimentError(f"a parameter's logarithm must lie inside its bounds, but Katib gave {value!r}") from error
        elif self.warp == "decade":
            if value <= 0:
                raise ExperimentError(f"a native value must lie in [1, {_DECADE:g}], but Katib gave {value!r}")
            value = self.low + math.log10(value) * (self.high - self.low)
        if not isinstance(self.kind, NativeIndex):
            return self.kind.decode(value)
        slack = _TOLERANCE * self.kind.size
        if not self.low - slack <= value <= self.high + slack:
            raise ExperimentError(f"an index must lie in [{self.low}, {self.high}], but Katib gave {text!r}")
        return min(max(math.floor(value + 0.5), 0), self.kind.size - 1)

    def encode(self, value: float | int) -> str:
        """Return the text that `decode` maps to a native value."""
        return repr(self._to_katib(float(value)))

    def _to_katib(self, value: float) -> float:
        if self.warp == "logarithm":
            return math.log(value)
        if self.warp == "decade":
            return float(_DECADE ** ((value - self.low) / (self.high - self.low)))
        return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoricalParameter:
    """A dimension without order, as a Katib `categorical` of indices."""

    kind: NativeIndex

    def parameter(self, name: str) -> dict[str, Any]:
        """Return the entry of `spec.parameters`."""
        space = {"list": [str(index) for index in range(self.kind.size)], "distribution": "uniform"}
        return {"name": name, "parameterType": "categorical", "feasibleSpace": space}

    def decode(self, text: str) -> int:
        """Return the index.

        Raises:
            ExperimentError: it is none of the categories.
        """
        return self.kind.decode(_number(text))

    def encode(self, value: float | int) -> str:
        """Return the text of an index."""
        return str(value)


class KatibSpace:
    """The parameters of one experiment: a translation of core's, in the texts of Katib and of one of its algorithms."""

    def __init__(self, translation: SpaceTranslation | ListTranslation, algorithm: str) -> None:
        self.translation, self.algorithm = translation, algorithm
        self.dimensions = {name: _dimension(kind, algorithm) for name, kind in translation.native.items()}

    def parameters(self) -> list[dict[str, Any]]:
        """Return `spec.parameters`, in the space's order."""
        return [dimension.parameter(name) for name, dimension in self.dimensions.items()]

    def decode(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return core's configuration for Katib's texts; names beyond the parameters are ignored.

        Raises:
            ExperimentError: a name is missing or a value lies outside.
        """
        missing = [name for name in self.dimensions if name not in values]
        if missing:
            raise ExperimentError(f"Katib must give a value of every parameter, but {', '.join(missing)} is missing")
        return self.translation.decode({name: item.decode(values[name]) for name, item in self.dimensions.items()})

    def to_json(self) -> dict[str, Any]:
        """Return what a pod needs to decode its parameters."""
        if isinstance(self.translation, ListTranslation):
            return {"algorithm": self.algorithm, "configurations": self.translation.configurations}
        return {"algorithm": self.algorithm, "search_space": self.translation.space.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KatibSpace:
        """Read back `to_json`; other keys are ignored."""
        if "configurations" in data:
            return cls(ListTranslation(data["configurations"]), data["algorithm"])
        return cls(SpaceTranslation(SearchSpace.from_json(data["search_space"])), data["algorithm"])


def _dimension(kind: Native, algorithm: str) -> OrderedParameter | CategoricalParameter:
    if isinstance(kind, NativeIndex) and (not kind.ordered or algorithm == GRID):
        return CategoricalParameter(kind=kind)
    if isinstance(kind, NativeFloat):
        low, high, log = float(kind.low), float(kind.high), kind.log
    elif isinstance(kind, NativeIndex):
        low, high, log = -0.5, kind.size - 0.5, False
    else:
        low, high, log = *kind.bounds, True
    warp: Warp = "decade" if algorithm in LOG_ONLY else "none"
    if log:
        warp = "logarithm" if algorithm in UNIFORM_ONLY or low < LEAST_LOG.get(algorithm, 0.0) else "none"
    return OrderedParameter(kind=kind, low=low, high=high, log=log, warp=warp)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise ExperimentError(f"a parameter's value must be a number, but Katib gave {text!r}") from error
    if not math.isfinite(number):
        raise ExperimentError(f"a parameter's value must be finite, but Katib gave {text!r}")
    return number
