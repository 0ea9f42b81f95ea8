"""A search space of every kind of dimension, and Hypothesis strategies of search spaces and of points in them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tuneoff.base.space import Categorical, Constant, Dimension, Float, IntegerLog, SearchSpace, stepped

SPACE = SearchSpace(
    {
        "linear": Float(low=-1.0, high=3.0),
        "log": Float(low=1e-5, high=1e-1, log=True),
        "log_integer": IntegerLog(low=1, high=8),
        "integer": stepped(16, 64, 16, integer=True),
        "float_step": stepped(0.0, 1.0, 0.25, integer=False),
        "ordered": Categorical(choices=(16, 32, 48, 128), ordered=True),
        "unordered": Categorical(choices=("a", None, 3, [1, 2])),
        "constant": Constant(value="adam"),
    }
)
NUMBERS = SearchSpace({name: item for name, item in SPACE if name != "unordered"})

_scalars = st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-1e6, 1e6) | st.text(max_size=5)


def _key(value: Any) -> Any:
    return float(value) if isinstance(value, int | float) else value


@st.composite
def dimensions(draw: st.DrawFn) -> Dimension:
    kind = draw(st.sampled_from(["float", "float_log", "int_log", "int", "float_step", "categorical", "constant"]))
    if kind == "float":
        low = draw(st.floats(-1e6, 1e6))
        return Float(low=low, high=low + draw(st.floats(0.0, 1e6)))
    if kind == "float_log":
        low = draw(st.floats(1e-9, 1e3))
        return Float(low=low, high=low * draw(st.floats(1.0, 1e6)), log=True)
    if kind == "int_log":
        low_int = draw(st.integers(1, 1000))
        return IntegerLog(low=low_int, high=low_int + draw(st.integers(0, 10_000)))
    if kind == "int":
        low_int, step = draw(st.integers(-1000, 1000)), draw(st.integers(1, 50))
        return stepped(low_int, low_int + step * draw(st.integers(0, 100)), step, integer=True)
    if kind == "float_step":
        start, width = draw(st.integers(-100, 100)) / 10, draw(st.sampled_from([0.1, 0.25, 0.3, 0.001, 1.0]))
        count = draw(st.integers(0, 100))
        return stepped(start, round(start + count * width, 9), width, integer=False)
    if kind == "categorical":
        choices = draw(st.lists(_scalars, min_size=1, max_size=6, unique_by=_key))
        return Categorical(choices=tuple(choices), ordered=draw(st.booleans()))
    return Constant(value=draw(_scalars | st.lists(st.integers(), max_size=3)))


def spaces() -> st.SearchStrategy[SearchSpace]:
    """Spaces of one to five dimensions."""
    names = st.sampled_from(["a", "b", "c", "d", "e"])
    return st.dictionaries(names, dimensions(), min_size=1, max_size=5).map(SearchSpace)


def units(space: SearchSpace) -> st.SearchStrategy[dict[str, float]]:
    """One number in [0, 1) per searched dimension."""
    return st.fixed_dictionaries({name: st.floats(0.0, 1.0, exclude_max=True) for name in space.searched})
