"""The dimensions of a search space: core defines the distribution of each, so that every framework draws the same."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.base.identity import canonical_json
from tuneoff.base.numbers import exact_text
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from decimal import Context, Decimal

MAX_POINTS = 2**52  # of a dimension: frameworks draw an index as a double between halves, which has no more of them
_LONGEST_TEXT = 40  # characters of a float that an error says to use


@dataclass(frozen=True, slots=True, kw_only=True)
class Float:
    """A real number, uniform in [low, high], or log-uniform. Inclusive bounds."""

    type: ClassVar[str] = "float"
    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, self.log)

    @property
    def cardinality(self) -> int | None:
        return None if self.low < self.high else 1

    def contains(self, value: Any) -> bool:
        return _is_number(value) and self.low <= value <= self.high

    def from_unit(self, unit: float) -> float:
        """Map `unit` in [0, 1) to a value by the inverse of the distribution function."""
        if self.log:
            value = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + unit * (self.high - self.low)
        return min(max(value, self.low), self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerLog:
    """An integer whose logarithm is uniform: round(exp(U[log(low - 1/2), log(high + 1/2)])), as Optuna rounds it.

    Exact in any framework: draw a log-uniform float from `continuous_bounds` and map it by `round_continuous`.
    """

    type: ClassVar[str] = "int_log"
    low: int
    high: int

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, True)
        if self.low < 1:
            raise ExperimentError(f"a logarithmic int needs `low >= 1`, but got low={self.low}; use a linear one")
        if self.high > MAX_POINTS:
            rule = f"a logarithmic int is drawn as a double, exact to the half up to 2^52, but got high={self.high}"
            raise ExperimentError(f"{rule}; use high={MAX_POINTS} or type: float")

    @property
    def cardinality(self) -> int | None:
        return self.high - self.low + 1

    @property
    def continuous_bounds(self) -> tuple[float, float]:
        return self.low - 0.5, self.high + 0.5

    def contains(self, value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high

    def from_unit(self, unit: float) -> int:
        low, high = (math.log(bound) for bound in self.continuous_bounds)
        return min(max(round(math.exp(low + unit * (high - low))), self.low), self.high)

    def probability(self, value: int) -> float:
        low, high = self.continuous_bounds
        return math.log((value + 0.5) / (value - 0.5)) / math.log(high / low)


class _Indexed:
    """`size` equally likely values, drawn by their indices."""

    __slots__ = ()
    cardinality = property(operator.attrgetter("size"))

    def contains(self: Any, value: Any) -> bool:
        try:
            self.index_of(value)
        except ExperimentError:
            return False
        return True

    def from_unit(self: Any, unit: float) -> Any:
        return self.value_at(min(int(unit * self.size), self.size - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped(_Indexed):
    """`size` equally likely, ordered points low, low + step, ...: an int, an int with step, or a float with step.

    Exact in any framework: draw an index 0 .. size-1 and map it by `value_at`.
    """

    type: ClassVar[str] = "stepped"
    low: float
    step: float
    size: int
    integer: bool

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise ExperimentError(f"`step > 0` must hold, but got step={self.step}")
        if self.size < 1:
            raise ExperimentError(f"`low <= high` must hold, but the dimension has {self.size} points")
        if self.size > MAX_POINTS:
            raise ExperimentError(f"a dimension may have at most 2^52 points, but got {self.size}; use a larger step")
        if self.integer and not (_is_integral(self.low) and _is_integral(self.step)):
            raise ExperimentError(f"an int needs whole numbers, but got low={self.low}, step={self.step}")

    def value_at(self, index: int) -> float | int:
        """Return point `index`, computed in decimals, so that 0.1 * 3 is 0.3 and -0.3 + 3 * 0.1 is 0 everywhere."""
        if self.integer:
            return int(self.low) + index * int(self.step)
        return float(_point(self.low, index, self.step))

    def index_of(self, value: Any) -> int:
        """Return the index of `value`.

        Raises:
            ExperimentError: it is none of the points.
        """
        if _is_number(value) and math.isfinite(value) and not (self.integer and isinstance(value, float)):
            index: int
            if self.integer:
                index = (value - int(self.low)) // int(self.step)
            else:
                index = round((_decimal(value) - _decimal(self.low)) / _decimal(self.step))
            if 0 <= index < self.size and self.value_at(index) == value:
                return index
        raise ExperimentError(f"{value!r} is not one of the {self.size} points from {self.low} by {self.step}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorical(_Indexed):
    """Equally likely choices without order; `ordered`: with order. Any JSON values, lists included.

    Exact in any framework: draw an index 0 .. len-1 and map it by `value_at`.
    """

    type: ClassVar[str] = "categorical"
    choices: tuple[Any, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", tuple(_freeze(choice) for choice in self.choices))
        if not self.choices:
            raise ExperimentError("a categorical dimension needs at least one choice, but got none")
        first: dict[str, int] = {}
        for number, choice in enumerate(self.choices, start=1):
            text = canonical_json(choice)  # of 1, 1.0 and true, or 1 and "1", each has its own
            if text in first:
                rule = "choices must differ in type or value"
                raise ExperimentError(f"{rule}, but number {first[text]} and number {number} are both {text}; remove one")
            first[text] = number

    @property
    def size(self) -> int:
        return len(self.choices)

    def value_at(self, index: int) -> Any:
        return self.choices[index]

    def index_of(self, value: Any) -> int:
        text = canonical_json(_freeze(value))
        for index, choice in enumerate(self.choices):
            if canonical_json(choice) == text:
                return index
        raise ExperimentError(f"{value!r} is not one of the choices {list(self.choices)!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A fixed value: part of every configuration, never drawn."""

    type: ClassVar[str] = "constant"
    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _freeze(self.value))
        canonical_json(self.value)

    @property
    def cardinality(self) -> int | None:
        return 1

    def contains(self, value: Any) -> bool:
        return canonical_json(_freeze(value)) == canonical_json(self.value)

    def from_unit(self, unit: float) -> Any:
        return self.value


Dimension = Float | IntegerLog | Stepped | Categorical | Constant


def extremes(dimension: Dimension) -> Sequence[Any]:
    """Return the values that all others lie between; of choices and of a constant: every value."""
    if isinstance(dimension, Float | IntegerLog):
        return dimension.low, dimension.high
    if isinstance(dimension, Stepped):
        return dimension.value_at(0), dimension.value_at(dimension.size - 1)
    return dimension.choices if isinstance(dimension, Categorical) else (dimension.value,)


def points(dimension: Dimension) -> Sequence[Any]:
    """Return the values of a finite dimension in order, each computed when it is asked for: there may be very many."""
    if isinstance(dimension, Constant):
        return [dimension.value]
    if isinstance(dimension, IntegerLog):
        return range(dimension.low, dimension.high + 1)
    if isinstance(dimension, Float):
        return [dimension.low]
    return _DimensionValues(dimension)


class _DimensionValues(Sequence[Any]):
    def __init__(self, dimension: Stepped | Categorical) -> None:
        self._dimension, self._indices = dimension, range(dimension.size)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        indices = self._indices[index]
        return self._dimension.value_at(indices) if isinstance(indices, int) else list(map(self._dimension.value_at, indices))


def typed(dimension: Dimension, value: Any) -> Any:
    """Return a value of `dimension` in its own type: 1 is 1.0 in a float."""
    is_real = isinstance(dimension, Float) or (isinstance(dimension, Stepped) and not dimension.integer)
    return float(value) if is_real else _freeze(value)


def stepped(low: float, high: float, step: float, *, integer: bool) -> Stepped:
    """Return the points from `low` by `step` up to `high`, which must be one of them.

    Raises:
        ExperimentError: `low > high`, `high` is not on the grid (never lowered silently), or there are too many points to draw.
    """
    _check_bounds(low, high, False)
    if step <= 0:
        raise ExperimentError(f"`step > 0` must hold, but got step={step}")
    distance, width = _exact().subtract(_decimal(high), _decimal(low)), _decimal(step)
    count = int(_exact().divide_int(distance, width))
    if not integer and float(_point(low, count + 1, step)) == high:  # a float nearest to a point may lie below it
        count += 1
    last = _point(low, count, step)
    got = f"{low=}, {high=}, {step=}"
    ends = [float(_point(low, index, step)) for index in (0, 1, count - 1, count)]
    if not integer and count > 0 and (count >= MAX_POINTS or ends[0] == ends[1] or ends[2] == ends[3]):
        raise ExperimentError(f"points must be different floats, at most 2^52 of them, but got {got}; remove `step`")
    if count >= MAX_POINTS:
        width = step * 2 ** (count // MAX_POINTS).bit_length()
        way_out = f"use step={width} and high={low + (high - low) // width * width}"
        raise ExperimentError(f"an int may have at most 2^52 points, as a framework draws doubles, but got {got}; {way_out}")
    if (last != _decimal(high)) if integer else (float(last) != high):
        text = str(int(last)) if integer else f"{last:f}"
        text = text if len(text) <= _LONGEST_TEXT else repr(float(last))
        raise ExperimentError(f"`high` must be `low` plus whole steps, but got {got}; use high={text}")
    return Stepped(low=low, step=step, size=count + 1, integer=integer)


@functools.cache
def _exact() -> Context:
    """Return decimal arithmetic that rounds no sum of two floats and no product of one with a count."""
    from decimal import Context  # a trial's process draws nothing

    return Context(prec=1500)


def _decimal(value: float) -> Decimal:
    from decimal import Decimal

    return Decimal(repr(value))


def _point(low: float, index: int, step: float) -> Decimal:
    return _exact().add(_decimal(low), _exact().multiply(index, _decimal(step)))


def describe(dimension: Dimension) -> str:
    """Return a short text of a dimension for tables and errors."""
    if isinstance(dimension, Float):
        return f"float [{exact_text(dimension.low)}, {exact_text(dimension.high)}]{' log' if dimension.log else ''}"
    if isinstance(dimension, IntegerLog):
        return f"int [{dimension.low}, {dimension.high}] log"
    if isinstance(dimension, Stepped):
        kind = "int" if dimension.integer else "float"
        last = dimension.value_at(dimension.size - 1)
        return f"{kind} [{exact_text(dimension.low)}, {exact_text(last)}] step {exact_text(dimension.step)}"
    if isinstance(dimension, Categorical):
        return f"{'ordered' if dimension.ordered else 'categorical'} {list(dimension.choices)!r}"
    return f"constant {dimension.value!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integral(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


def _check_bounds(low: float, high: float, log: bool) -> None:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ExperimentError(f"bounds must be finite, but got {low=}, {high=}")
    if low > high:
        raise ExperimentError(f"`low <= high` must hold, but got {low=}, {high=}")
    if not math.isfinite(high - low):
        raise ExperimentError(f"`high - low` must be a finite number, but got {low=}, {high=}; use closer bounds")
    if log and low <= 0:
        raise ExperimentError(f"a logarithmic dimension needs `low > 0`, but got {low=}")


def _freeze(value: Any) -> Any:
    return [_freeze(item) for item in value] if isinstance(value, list | tuple) else value
