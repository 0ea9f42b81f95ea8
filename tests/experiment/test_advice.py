"""What a refusal of a dimension says to use is accepted, to the letter, and no value leaves the bounds."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tuneoff.base.dimension import MAX_POINTS, Dimension, Stepped
from tuneoff.base.reading import Refused, read
from tuneoff.experiment.advice import refusal
from tuneoff.experiment.schema import DimensionPart
from tuneoff.experiment.yaml_reader import scalar_tag

ADVICE = re.compile(r"\b(low|high|step)=(\S+?)(?= and |,? or |$)")


def built(fields: dict[str, Any]) -> Dimension | str:
    """Return core's dimension for what a file says, or the refusal."""
    try:
        part: DimensionPart = read(DimensionPart, fields)
    except Refused as error:
        return refusal(error)
    return part.to_core()


def check_followed(**fields: Any) -> None:
    """Write what the refusal says, if there is one, its numbers as YAML reads them: then the dimension has these ends."""
    dimension = built(fields)
    if isinstance(dimension, str):
        advice = dimension.rpartition("; ")[2]
        if advice == "remove `step`":
            del fields["step"]
        else:
            numbers = {name: {"int": int, "float": float}[scalar_tag(text)](text) for name, text in ADVICE.findall(advice)}
            assert numbers, dimension
            fields |= numbers
        dimension = built(fields)
    assert not isinstance(dimension, str), dimension
    if isinstance(dimension, Stepped):
        ends = [dimension.value_at(index) for index in (0, dimension.size - 1)]
        assert ends == [fields["low"], fields["high"] if dimension.integer else float(fields["high"])]
        assert all(dimension.contains(value) for value in ends)


@given(low=st.integers(-(2**70), 2**70), distance=st.integers(0, 2**80), step=st.none() | st.integers(1, 2**80))
@example(low=1000003, distance=9000000 - 1000003, step=1000)
@example(low=0, distance=2**64 - 1, step=None)
@example(low=1, distance=30414093201713378043612608166064768844377641568960511999999999999, step=None)
@example(low=0, distance=10**12 + 3, step=7)
def test_the_advice_for_an_integer_is_accepted(low: int, distance: int, step: int | None) -> None:
    check_followed(type="int", low=low, high=low + distance, **({} if step is None else {"step": step}))


FLOATS = st.floats(-1e300, 1e300, allow_subnormal=True)


@given(low=FLOATS, high=FLOATS, step=st.floats(5e-324, 1e300))
@example(low=0.022943223880069138, high=0.4588644776013828, step=0.001)
@example(low=0.022943223880069138, high=0.457943223880069138, step=0.001)
@example(low=0.0, high=0.30000000000000004, step=0.1)
@example(low=1e17, high=1e17 + 64, step=1.0)
@example(low=-1e17, high=0.0, step=1.0)
def test_the_advice_for_a_float_is_accepted(low: float, high: float, step: float) -> None:
    check_followed(type="float", low=min(low, high), high=max(low, high), step=step)


@pytest.mark.parametrize("high", [MAX_POINTS + 1, 2**64, 10**200])
def test_the_advice_for_a_large_logarithmic_integer_is_accepted(high: int) -> None:
    check_followed(type="int", low=1, high=high, log=True)
    assert not isinstance(built({"type": "float", "low": 1, "high": high, "log": True}), str)
