"""A direct test of an adapter's translation: at both ends of every dimension, and there and back at every probed value.

What a sampler draws cannot show all of it: a translation that turns a range around, or that takes one choice for another, draws
the same distribution.
"""

from __future__ import annotations

import math
from typing import Any

from tuneoff.base.identity import canonical_json
from tuneoff.base.space import Categorical, Dimension, Float, SearchSpace, points
from tuneoff.errors import TuneoffError
from tuneoff.experiment.translation import FrameworkSpace

WHOLE = ""  # in the place of a dimension's name: the translation as a whole
MOST_POINTS = 64  # of a dimension; of a wider one so many, both ends and evenly between
TOLERANCE = 1e-9  # of a float, relative to its greater bound: exp(log(bound)) may miss the bound by rounding


def mapping_problems(space: SearchSpace, framework: FrameworkSpace) -> dict[str, list[str]]:
    """Return what is wrong, by dimension; a dimension without a problem is left out."""
    problems: dict[str, list[str]] = {}
    for name in space.searched:
        texts = _end_problems(space, framework, name)
        if framework.encode is not None and not texts:
            texts = _round_trip_problems(space, framework, name)
        if texts:
            problems[name] = texts
    return problems


def probed_values(dimension: Dimension) -> list[Any]:
    """Return all values of a narrow dimension; of a wide or continuous one both ends and values between."""
    if isinstance(dimension, Float):
        units = (index / (MOST_POINTS - 1) for index in range(MOST_POINTS))
        return [dimension.low, *(dimension.from_unit(unit) for unit in units), dimension.high]
    values = points(dimension)
    if len(values) <= MOST_POINTS:
        return list(values)
    last = len(values) - 1
    return [values[index * last // (MOST_POINTS - 1)] for index in range(MOST_POINTS)]


def _end_problems(space: SearchSpace, framework: FrameworkSpace, name: str) -> list[str]:
    """Decode the framework's least and greatest values: they must be the dimension's own ends."""
    dimension = space.dimensions[name]
    if name not in framework.ends:
        return [f"the framework has no dimension for it; it has: {', '.join(framework.ends) or 'none'}"]
    values = points(dimension) if not isinstance(dimension, Float) else (dimension.low, dimension.high)
    problems = []
    for which, word in ((0, "least"), (1, "greatest")):
        native = {other: ends[which] for other, ends in framework.ends.items()}
        try:
            decoded = framework.decode(native)[name]
        except Exception as error:  # an adapter's code may raise anything
            problems.append(f"the framework's {word} value {native[name]!r} cannot be decoded: {_text(error)}")
            continue
        wanted = values[-which]
        if not _same(dimension, decoded, wanted):
            problems.append(f"the framework's {word} value {native[name]!r} becomes {decoded!r}, but must become {wanted!r}")
    return problems


def _round_trip_problems(space: SearchSpace, framework: FrameworkSpace, name: str) -> list[str]:
    assert framework.encode is not None
    dimension = space.dimensions[name]
    base = space.from_units({})
    for value in probed_values(dimension):
        try:
            encoded = framework.encode({**base, name: value})
            decoded = framework.decode(encoded)[name]
        except Exception as error:  # an adapter's code may raise anything
            return [f"{value!r} cannot go to the framework and back: {_text(error)}"]
        if not _same(dimension, decoded, value):
            return [f"{value!r} goes to the framework as {encoded[name]!r} and comes back as {decoded!r}"]
        if not (isinstance(dimension, Categorical) or _is_between(encoded[name], framework.ends[name])):
            low, high = framework.ends[name]
            return [
                f"{value!r} goes to the framework as {encoded[name]!r}, which it cannot draw: it draws from {low!r} to {high!r}"
            ]
    return []


def _same(dimension: Dimension, value: Any, wanted: Any) -> bool:
    """Compare values: floats to a tolerance, all others exactly, types included."""
    if isinstance(dimension, Float):
        slack = TOLERANCE * max(abs(dimension.low), abs(dimension.high))
        return isinstance(value, float) and math.isclose(value, wanted, rel_tol=TOLERANCE, abs_tol=slack)
    try:
        return canonical_json(value) == canonical_json(wanted)
    except (TypeError, ValueError, TuneoffError):
        return False


def _is_between(native: Any, ends: tuple[Any, Any]) -> bool:
    """Tell whether a number of the framework's lies in its range; a text is read as a number."""
    try:
        value, low, high = float(native), float(ends[0]), float(ends[1])
    except (TypeError, ValueError):
        return True
    slack = TOLERANCE * max(abs(low), abs(high))
    return low - slack <= value <= high + slack


def _text(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
