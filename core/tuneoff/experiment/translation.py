"""What all translations to a framework share: three native kinds that every framework draws exactly.

An adapter maps `SpaceTranslation.native` to its framework's types and gives the framework's answer to `decode`; nothing
else decides what a configuration is. A `NativeFloat` becomes the framework's (log-)uniform float, a `NativeIndex` its
uniform integer 0 .. size-1 (or an unordered choice of these where `ordered` is False), a `NativeLogInteger` its
log-uniform float over `bounds`. A `FrameworkSpace` is what came of it, for `tuneoff check --space`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tuneoff.base.identity import configuration_digest
from tuneoff.base.numbers import described_value, number_of
from tuneoff.base.space import Categorical, Dimension, Float, IntegerLog, SearchSpace, Stepped
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec


NativeValues = Mapping[str, Any]  # the framework's values by the space's names
LIST_INDEX = "configuration_index"  # the one native dimension of a listed set of configurations
_TOLERANCE = 1e-9  # relative; a framework's own exp(log(bound)) may miss the bound by rounding, never by more


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFloat:
    """A float, uniform or log-uniform in [low, high]."""

    low: float
    high: float
    log: bool

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high), as a `NativeLogInteger` has them."""
        return self.low, self.high

    def decode(self, value: Any) -> float:
        return _clamp(_real(value), self.low, self.high)

    def encode(self, value: Any) -> float:
        return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeIndex:
    """An integer, uniform in 0 .. size-1. `ordered`: neighbours are alike, so a model may use the order."""

    size: int
    ordered: bool

    @property
    def bounds(self) -> tuple[int, int]:
        """(0, size - 1)."""
        return 0, self.size - 1

    def decode(self, value: Any) -> int:
        number = _real(value)
        if not (number.is_integer() and 0 <= number < self.size):
            raise ExperimentError(f"an index must be an integer in 0 .. {self.size - 1}, but the framework gave {value!r}")
        return int(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeLogInteger:
    """A float, log-uniform in `bounds`, that core rounds to an integer in [low, high]."""

    low: int
    high: int
    log: ClassVar[bool] = True

    @property
    def bounds(self) -> tuple[float, float]:
        """The continuous range to ask the framework for: (low - 1/2, high + 1/2)."""
        return self.low - 0.5, self.high + 0.5

    def decode(self, value: Any) -> int:
        return min(max(round(_clamp(_real(value), *self.bounds)), self.low), self.high)

    def encode(self, value: Any) -> float:
        return float(value)


Native = NativeFloat | NativeIndex | NativeLogInteger


class Translation(Protocol):
    """A set of native dimensions and the way between them and core's configurations. It may be pickled, for workers."""

    @property
    def native(self) -> Mapping[str, Native]: ...

    def decode(self, native: Mapping[str, Any]) -> dict[str, Any]: ...

    def encode(self, configuration: Mapping[str, Any]) -> dict[str, float | int]: ...


class SpaceTranslation:
    """A search space in native dimensions; those with one value are left out and added again by `decode`."""

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.native: dict[str, Native] = {name: native(dimension) for name, dimension in space.searched.items()}

    def decode(self, native: Mapping[str, Any]) -> dict[str, Any]:
        """Return core's configuration for a framework's values; names beyond `self.native` are ignored.

        Raises:
            ExperimentError: a name is missing or a value lies outside its native dimension.
        """
        values = {}
        for name, dimension in self.space:
            kind = self.native.get(name)
            if kind is None:
                values[name] = dimension.from_unit(0.0)
            elif name not in native:
                raise ExperimentError(f"the framework must give {sorted(self.native)}, but gave {sorted(native)}")
            else:
                value = kind.decode(native[name])
                values[name] = dimension.value_at(int(value)) if isinstance(dimension, Stepped | Categorical) else value
        return values

    def encode(self, configuration: Mapping[str, Any]) -> dict[str, float | int]:
        """Return the native values that `decode` maps to `configuration`.

        Raises:
            ExperimentError: the configuration lies outside the space.
        """
        self.space.check(configuration)
        encoded: dict[str, float | int] = {}
        for name, kind in self.native.items():
            dimension, value = self.space.dimensions[name], configuration[name]
            if isinstance(dimension, Stepped | Categorical):
                encoded[name] = dimension.index_of(value)
            elif not isinstance(kind, NativeIndex):
                encoded[name] = kind.encode(value)
        return encoded


class ListTranslation:
    """A given list of configurations as one native index (`sampler: fixed`, and a grid where a framework has none)."""

    def __init__(self, configurations: Sequence[Mapping[str, Any]]) -> None:
        self.configurations = [dict(configuration) for configuration in configurations]
        self.native: dict[str, Native] = {LIST_INDEX: NativeIndex(size=len(self.configurations), ordered=True)}
        self._index = {configuration_digest(item): index for index, item in enumerate(self.configurations)}

    def decode(self, native: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration whose index the framework gave."""
        kind = self.native[LIST_INDEX]
        return dict(self.configurations[int(kind.decode(native.get(LIST_INDEX)))])

    def encode(self, configuration: Mapping[str, Any]) -> dict[str, float | int]:
        """Return the index of a configuration of the list."""
        index = self._index.get(configuration_digest(configuration))
        if index is None:
            raise ExperimentError(f"{dict(configuration)!r} is not one of the {len(self.configurations)} listed configurations")
        return {LIST_INDEX: index}


class NumberedTranslation:
    """Another translation whose native names are `p0`, `p1`, ...: no library takes them for a path or an argument of its own."""

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self._names = {f"p{number}": name for number, name in enumerate(translation.native)}
        self.native = {key: _chosen(translation.native[name]) for key, name in self._names.items()}

    def decode(self, native: Mapping[str, Any]) -> dict[str, Any]:
        return self._translation.decode({name: native[key] for key, name in self._names.items() if key in native})

    def encode(self, configuration: Mapping[str, Any]) -> dict[str, float | int]:
        return self.named(self._translation.encode(configuration))

    def named(self, native: Mapping[str, float | int]) -> dict[str, float | int]:
        """Return native values under these names."""
        return {key: native[name] for key, name in self._names.items()}


def translation_of(spec: RunSpec) -> SpaceTranslation | ListTranslation:
    """Return the translation of a run: of its list of configurations (samplers fixed and grid), else of its search space."""
    from tuneoff.experiment.strategies import listed_configurations  # a trial's process translates, but draws nothing

    listed = listed_configurations(spec)
    return SpaceTranslation(spec.experiment.search_space) if listed is None else ListTranslation(listed)


def native_space(spec: RunSpec) -> FrameworkSpace:
    """Return the space of a framework that is given exactly the native dimensions."""
    translation = translation_of(spec)
    ends = {name: kind.bounds for name, kind in translation.native.items()}
    return FrameworkSpace(ends=ends, decode=translation.decode, encode=translation.encode)


def given_values(spec: RunSpec) -> list[dict[str, float | int]]:
    """Return the native values of the configurations that a run is given, in order: a whole list, or those tried first."""
    translation = translation_of(spec)
    given = translation.configurations if isinstance(translation, ListTranslation) else spec.experiment.configurations
    return [translation.encode(configuration) for configuration in given]


def native(dimension: Dimension) -> Native:
    """Return the native kind that draws `dimension` exactly."""
    if isinstance(dimension, Float):
        return NativeFloat(low=dimension.low, high=dimension.high, log=dimension.log)
    if isinstance(dimension, IntegerLog):
        return NativeLogInteger(low=dimension.low, high=dimension.high)
    if isinstance(dimension, Stepped):
        return NativeIndex(size=dimension.size, ordered=True)
    if isinstance(dimension, Categorical):
        return NativeIndex(size=dimension.size, ordered=dimension.ordered)
    return NativeIndex(size=1, ordered=True)


def _chosen(kind: Native) -> Native:
    """Return the kind, with two values for the index of a list that has one: some libraries have no dimension of one value."""
    return replace(kind, size=max(kind.size, 2)) if isinstance(kind, NativeIndex) else kind


def _real(value: Any) -> float:
    number = number_of(value)
    if number is None or not math.isfinite(number):
        raise ExperimentError(f"a native value must be a finite number, but the framework gave {described_value(value)}")
    return float(number)


def _clamp(value: float, low: float, high: float) -> float:
    slack = _TOLERANCE * max(abs(low), abs(high))
    if not low - slack <= value <= high + slack:
        raise ExperimentError(f"a native value must lie in [{low}, {high}], but the framework gave {value!r}")
    return min(max(value, low), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkSpace:
    """What an adapter asked its framework for, and how it translates: the same code that its runs use.

    `ends`: of each dimension with more than one value the least and the greatest value that the framework can draw, read from
    the framework's own objects where it has them; of choices the first and the last one. `decode` gives core's configuration
    for the framework's values, `encode` the framework's values for core's configuration (None: nothing is ever encoded).
    """

    ends: Mapping[str, tuple[Any, Any]]
    decode: Callable[[NativeValues], Mapping[str, Any]]
    encode: Callable[[Mapping[str, Any]], NativeValues] | None = None
