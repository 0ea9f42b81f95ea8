"""`python -m tuneoff.trust.space_test.draw REQUEST.json`: the process in which one adapter draws. It alone imports a framework.

Before it answers it writes `draws.jsonl` into the folder of the run, one configuration a line.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tuneoff.adapter import Adapter
from tuneoff.base.identity import canonical_json
from tuneoff.base.output import one_line
from tuneoff.base.space import Categorical, Dimension, Float, SearchSpace, points
from tuneoff.base.targets import load_target
from tuneoff.errors import ExperimentError, TuneoffError
from tuneoff.experiment.translation import FrameworkSpace
from tuneoff.record.run_context import RunContext, read_context
from tuneoff.run.child import answer_request

WHOLE = ""  # in the place of a dimension's name: the translation as a whole
MOST_POINTS = 64  # of a dimension; of a wider one so many, both ends and evenly between
TOLERANCE = 1e-9  # of a float, relative to its greater bound: exp(log(bound)) may miss the bound by rounding
DRAWS = "draws.jsonl"
DRAWN, NOT_OFFERED, OUTSIDE, FAILED = "drawn", "not_offered", "outside", "failed"  # states of an answer


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


def _end_problems(space: SearchSpace, framework: FrameworkSpace, name: str) -> list[str]:
    """Decode the framework's least and greatest values: they must be the dimension's own ends."""
    dimension = space.dimensions[name]
    if name not in framework.ends:
        return [f"the framework has no dimension for it; it has: {', '.join(framework.ends) or 'none'}"]
    values = points(dimension) if not isinstance(dimension, Float) else (dimension.low, dimension.high)
    problems = []
    for which, word in ((0, "minimum"), (1, "maximum")):
        native = {other: ends[which] for other, ends in framework.ends.items()}
        try:
            decoded = framework.decode(native)[name]
        except Exception as error:  # an adapter's code may raise anything
            problems.append(f"the framework's {word} {native[name]!r} cannot be decoded: {_text(error)}")
            continue
        wanted = values[-which]
        if not _same(dimension, decoded, wanted):
            problems.append(f"the framework's {word} {native[name]!r} becomes {decoded!r}, but must become {wanted!r}")
    return problems


def _round_trip_problems(space: SearchSpace, framework: FrameworkSpace, name: str) -> list[str]:
    assert framework.encode is not None
    dimension = space.dimensions[name]
    base = space.from_units({})
    if isinstance(dimension, Float):  # both ends, and values between
        units = (index / (MOST_POINTS - 1) for index in range(MOST_POINTS))
        values: Sequence[Any] = [dimension.low, *(dimension.from_unit(unit) for unit in units), dimension.high]
    else:
        values, last = points(dimension), len(points(dimension)) - 1
        if last >= MOST_POINTS:
            values = [values[index * last // (MOST_POINTS - 1)] for index in range(MOST_POINTS)]
    for value in values:
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
    return one_line(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What an adapter gave.

    `problems`: what is wrong with its translation, by dimension; None: that was not tested, `mapping_text` says why.
    """

    state: str
    source: str = "draw"  # of its own method; "runs": of trials
    text: str = ""
    configurations: Sequence[Mapping[str, Any]] = ()
    problems: dict[str, list[str]] | None = None
    mapping_text: str = ""


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Return the drawing, as far as its configurations, which are in the file."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return asdict(_answer(read_context(Path(request["run_dir"])), request["count"]))


def _answer(context: RunContext, count: int) -> Drawing:
    state, text = FAILED, ""
    adapter: Adapter | None = None
    try:
        adapter = load_target(context.spec.adapter_target)(context)
        with (context.run_dir / DRAWS).open("w", buffering=1) as file:  # by lines: what a killed process drew is told
            for configuration in islice(adapter.draw(count), count):
                file.write(json.dumps(dict(configuration)) + "\n")  # NaN and infinities too: they are for the test of the bounds
        state = DRAWN
    except NotImplementedError as error:
        state, text = NOT_OFFERED, one_line(str(error))
    except Exception as error:  # a framework may raise anything
        if type(error) is ExperimentError:  # of core's or the adapter's translation: the framework gave what is not in the space
            state, text = OUTSIDE, one_line(str(error))
        else:
            traceback.print_exc()
            text = _text(error)
    problems, mapping_text = (None, text) if adapter is None else _mapping(adapter)
    return Drawing(state=state, text=text, problems=problems, mapping_text=mapping_text)


def _mapping(adapter: Adapter) -> tuple[dict[str, list[str]] | None, str]:
    """Return what is wrong with the translation, by dimension, or None and why the adapter cannot tell its space."""
    try:
        return mapping_problems(adapter.context.spec.experiment.search_space, adapter.framework_space()), ""
    except NotImplementedError as error:
        return None, one_line(str(error)) or "the adapter has no `framework_space`"
    except Exception as error:  # an adapter's code may raise anything
        traceback.print_exc()
        return {WHOLE: [f"the translation failed: {_text(error)}"]}, ""


if __name__ == "__main__":
    answer_request(main)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)  # a framework's threads may not hold up the end
