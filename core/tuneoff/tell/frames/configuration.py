"""Configurations as columns: one per parameter, each of the type that its values have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tuneoff.errors import ResultsError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

INT64 = range(-(2**63), 2**63)


def with_configuration(trials: DataFrame, prefix: str) -> DataFrame:
    """Return the trials with a column per parameter; a trial that lacks a parameter has a missing value there.

    Raises:
        ResultsError: a column has such a name already, or a configuration is no JSON object.
    """
    import pandas

    text = "[" + ",".join(trials["configuration"]) + "]"
    try:
        configurations = msgspec.json.decode(text.encode(), type=list[dict[str, Any]])
    except msgspec.MsgspecError as error:
        raise ResultsError(f"a configuration is damaged: {error}; export again") from error
    if len(configurations) != len(trials):
        raise ResultsError("a configuration is damaged: it is not one JSON object; export again")
    names = list(dict.fromkeys(name for configuration in configurations for name in configuration))
    if taken := [name for name in names if prefix + name in trials.columns]:
        raise ResultsError(f"the trials have a column {prefix + taken[0]!r} already; give another prefix")
    found = {prefix + name: _column([one.get(name) for one in configurations]).array for name in names}
    return pandas.concat([trials, pandas.DataFrame(found, index=trials.index)], axis="columns")


def _column(values: Sequence[Any]) -> Series[Any]:
    """Return values as a column of their type; of mixed types, or nested, they stay as they are."""
    import pandas

    types = {type(value) for value in values if value is not None}
    if types == {bool}:
        return pandas.Series(values, dtype="boolean")
    if types == {int} and all(value is None or value in INT64 for value in values):
        return pandas.Series(values, dtype="Int64")
    if types == {float} or types == {int, float}:
        return pandas.Series([None if value is None else float(value) for value in values], dtype="float64")
    return pandas.Series(values, dtype="str" if types == {str} else "object")
