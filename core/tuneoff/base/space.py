"""The search space: named, independent dimensions in a fixed order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tuneoff.base.dimension import (
    Categorical,
    Constant,
    Dimension,
    Float,
    IntegerLog,
    Stepped,
    describe,
    extremes,
    points,
    stepped,
    typed,
)
from tuneoff.errors import ExperimentError

__all__ = [
    "MAX_LISTED",
    "Categorical",
    "Constant",
    "Dimension",
    "Float",
    "IntegerLog",
    "SearchSpace",
    "Stepped",
    "describe",
    "extremes",
    "points",
    "stepped",
]

_DIMENSIONS: dict[str, type[Any]] = {kind.type: kind for kind in (Float, IntegerLog, Stepped, Categorical, Constant)}
MAX_LISTED = 100_000  # a grid larger than this is refused, not enumerated


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Named dimensions in a fixed order (the order of the file); independent of each other."""

    dimensions: Mapping[str, Dimension]

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise ExperimentError("a search space needs at least one dimension, but got none")

    def __iter__(self) -> Iterator[tuple[str, Dimension]]:
        return iter(self.dimensions.items())

    @property
    def searched(self) -> dict[str, Dimension]:
        """The dimensions with more than one value."""
        return {name: dimension for name, dimension in self if dimension.cardinality != 1}

    @property
    def cardinality(self) -> int | None:
        """Number of configurations; None where a dimension is continuous."""
        sizes = [dimension.cardinality for _, dimension in self]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    def check(self, configuration: Mapping[str, Any]) -> None:
        """Raise ExperimentError unless `configuration` has exactly the space's names, each with a value inside."""
        if set(configuration) != set(self.dimensions):
            raise ExperimentError(f"a configuration must name {sorted(self.dimensions)}, but got {sorted(configuration)}")
        for name, dimension in self:
            if not dimension.contains(configuration[name]):
                raise ExperimentError(f"{name}={configuration[name]!r} lies outside {describe(dimension)}")

    def complete(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """Return `configuration` in the space's order and types, with the dimensions that have one value added.

        An int becomes a float where the dimension is a float: 1 and 1.0 are different configurations to a hash.

        Raises:
            ExperimentError: an unknown or missing name, or a value outside.
        """
        single = {name: points(dimension)[0] for name, dimension in self if dimension.cardinality == 1}
        complete = {**single, **configuration}
        self.check(complete)
        return {name: typed(dimension, complete[name]) for name, dimension in self}

    def from_units(self, units: Mapping[str, float]) -> dict[str, Any]:
        """Map one number in [0, 1) per searched dimension to a configuration."""
        return {name: dimension.from_unit(units.get(name, 0.0)) for name, dimension in self}

    def grid(self) -> list[dict[str, Any]]:
        """Return every configuration, the last dimension varying fastest.

        Raises:
            ExperimentError: a dimension is continuous, or there are more than 100 000 configurations.
        """
        size = self.cardinality
        if size is None:
            names = [name for name, dimension in self if dimension.cardinality is None]
            raise ExperimentError(f"a grid needs finite dimensions, but {', '.join(names)} is continuous; give it a step")
        if size > MAX_LISTED:
            raise ExperimentError(f"a grid may have at most {MAX_LISTED} configurations, but this space has {size}")
        configurations: list[dict[str, Any]] = [{}]
        for name, dimension in self:
            values = points(dimension)
            configurations = [{**partial, name: value} for partial in configurations for value in values]
        return configurations

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form: a list, because the order of dimensions decides what a seeded sampler draws."""
        return {"dimensions": [{"name": name, "type": dimension.type, **asdict(dimension)} for name, dimension in self]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SearchSpace:
        """Read back `to_json`; the types of a dimension's fields are not checked."""
        dimensions: dict[str, Dimension] = {}
        for fields in map(dict, data["dimensions"]):
            name, kind = fields.pop("name"), _DIMENSIONS[fields.pop("type")]
            if not isinstance(name, str):
                raise TypeError(f"a dimension's name must be text, but got {name!r}")
            dimensions[name] = kind(**fields)
        return cls(dimensions)
