"""How the trials of each group ended, and quartiles of what they reached and took; no Python object per trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from tuneoff.record.run_record import TrialState

if TYPE_CHECKING:
    import numpy
    from pandas import DataFrame

COLUMNS = ("is_selected", "state", "value", "started_seconds", "busy_seconds")  # of `trials`, beside those to group by
STATES: tuple[str, ...] = get_args(TrialState)
SUCCESSES, FAILURES = ("completed", "pruned"), ("failed", "timed_out")
QUARTILES = {"q1": 25, "median": 50, "q3": 75}


def summary(trials: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return a row per group of the selected trials: see `Frames.summary`."""
    import numpy
    import pandas

    if not trials["is_selected"].all():
        trials = trials[trials["is_selected"]]
    group, keys = _groups(trials, by)
    states = pandas.Categorical(trials["state"], categories=STATES)
    size = len(STATES) + 1  # one for a state that is none of them
    counts = numpy.bincount(group * size + states.codes + 1, minlength=len(keys) * size).reshape(len(keys), size)
    table: dict[str, Any] = {"trials": counts.sum(axis=1)}
    table.update({state: counts[:, place] for place, state in enumerate(STATES, 1)})
    table["failures"] = sum(table[state] for state in FAILURES)
    table["success_share"] = sum(table[state] for state in SUCCESSES) / table["trials"]
    small = group.astype(numpy.uint16) if len(keys) < 1 << 16 else group  # sorted in a fraction of the time
    order = numpy.argsort(small, kind="stable")
    completed = states.codes == STATES.index("completed")
    values = numpy.where(completed, trials["value"].to_numpy(), numpy.nan)
    table.update(_quartiles("value_{}", values, order, table["trials"]))
    busy = numpy.where(trials["started_seconds"].notna(), trials["busy_seconds"].to_numpy(), numpy.nan)
    table.update(_quartiles("busy_{}_seconds", busy, order, table["trials"]))
    return pandas.DataFrame(table, index=keys)


def _groups(trials: DataFrame, by: Sequence[str]) -> tuple[numpy.ndarray, Any]:
    """Return the number of each trial's group, and the groups: in the order of the tables, what is missing first."""
    import numpy
    import pandas

    combined = numpy.zeros(len(trials), dtype=numpy.int64)
    columns = [pandas.Categorical(trials[name]) for name in by]
    for column in columns:
        combined = combined * (len(column.categories) + 1) + column.codes + 1
    codes, found = pandas.factorize(combined, sort=True)
    names: list[Any] = []
    for column in reversed(columns):
        found, places = numpy.divmod(found, len(column.categories) + 1)
        names.insert(0, pandas.Categorical.from_codes(places - 1, dtype=column.dtype))
    if len(by) == 1:
        return codes, pandas.Index(names[0], name=by[0])
    return codes, pandas.MultiIndex.from_arrays(names, names=list(by))


def _quartiles(name: str, values: numpy.ndarray, order: numpy.ndarray, sizes: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """Return the quartiles of each group's values, those that are NaN left out; NaN for a group without any.

    `order`: the trials by their groups, whose `sizes` follow each other.
    """
    import numpy

    found = numpy.full((len(QUARTILES), len(sizes)), numpy.nan)
    for place, part in enumerate(numpy.split(values[order], numpy.cumsum(sizes)[:-1])):
        part = part[~numpy.isnan(part)]
        if part.size:
            found[:, place] = numpy.percentile(part, list(QUARTILES.values()))
    return {name.format(quartile): row for quartile, row in zip(QUARTILES, found, strict=True)}
