"""A results folder as data frames, read when they are asked for: from a current export in Parquet, else from the records."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from tuneoff.base.commands import command, install_command
from tuneoff.base.files import regular, without_links
from tuneoff.base.layout import EXPORT
from tuneoff.base.packages import missing_modules
from tuneoff.errors import MissingPackageError, ResultsError, UnknownNameError
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import TrialState
from tuneoff.tell.frames.export import KEY, executions, export_key, joined, parts, schema
from tuneoff.tell.frames.tables import TABLES, Columns

if TYPE_CHECKING:
    import numpy
    from pandas import DataFrame, Series

INT64 = range(-(2**63), 2**63)
AGAIN = "the records are read instead; for speed export again: %s"

log = logging.getLogger(__name__)
COLUMNS = ("is_selected", "state", "value", "started_seconds", "busy_seconds")  # of `trials`, beside those to group by
STATES: tuple[str, ...] = get_args(TrialState)
SUCCESSES, FAILURES = ("completed", "pruned"), ("failed", "timed_out")
QUARTILES = {"q1": 25, "median": 50, "q3": 75}


class Frames:
    """The tables of a results folder. Each attribute is a data frame, read once, when it is first asked for.

    All executions are in them: `is_selected` marks those that stand for their runs, `warm_up` those that count nowhere.
    """

    def __init__(self, folder: Path, key: str | None) -> None:
        """Use `load`. `key`: of the export that is current; None: the records are read."""
        self.folder = folder
        self._key = key
        self._read: dict[str, DataFrame] = {}

    @property
    def source(self) -> Literal["export", "records"]:
        """Where tables are read from."""
        return "records" if self._key is None else "export"

    @property
    def runs(self) -> DataFrame:
        """One row per execution."""
        return self._kept("runs")

    @property
    def trials(self) -> DataFrame:
        """One row per trial."""
        return self._kept("trials")

    @property
    def epochs(self) -> DataFrame:
        """One row per epoch and metric."""
        return self._kept("epochs")

    @property
    def metrics(self) -> DataFrame:
        """One row per metric of an execution."""
        return self._kept("metrics")

    @property
    def steps(self) -> DataFrame:
        """One row per execution and part of its job completion time."""
        return self._kept("steps")

    @property
    def declared(self) -> DataFrame:
        """One row per execution and declared variable."""
        return self._kept("declared")

    def tables(self) -> dict[str, list[str]]:
        """Return the names of the tables with those of their columns; reads nothing."""
        return {name: list(columns) for name, columns in TABLES.items()}

    def read(self, table: str, columns: Sequence[str] | None = None) -> DataFrame:
        """Read a table, or some columns of it in the order given; nothing is kept.

        Raises:
            UnknownNameError: there is no such table or column.
            ResultsError: a record cannot be read.
        """
        if table not in TABLES:
            raise UnknownNameError(f"no table named {table!r}; there are: {', '.join(TABLES)}")
        names = list(TABLES[table]) if columns is None else list(dict.fromkeys(columns))
        if unknown := [name for name in names if name not in TABLES[table]]:
            raise UnknownNameError(f"the table {table!r} has no column {unknown[0]!r}; it has: {', '.join(TABLES[table])}")
        stored, path, columns_read = None, self.folder / EXPORT / f"{table}.parquet", names or ["run_id"]
        if self._key is not None:
            stored = _exported(path, TABLES[table], columns_read, self._key)
            if stored is None:
                log.warning(f"%s cannot be used; {AGAIN}", path, _export(self.folder))
        if stored is None:
            described = {name: TABLES[table][name] for name in columns_read}
            form, tables = schema(described), list[Any]()
            for execution in executions(self.folder, [run.run_id for run in read_plan(self.folder).runs]):
                tables += parts(execution.rows(table, execution.read(), described), described, form)
            stored = joined(tables, form)
        frame: DataFrame = stored.to_pandas()
        return frame if names else frame[[]]

    def trials_with_configuration(self, prefix: str = "configuration.") -> DataFrame:
        """Return the trials with a column for each parameter of their configurations, named `prefix` and the parameter.

        Raises:
            ResultsError: a column of the trials has such a name.
        """

        return with_configuration(self.trials, prefix)

    def summary(self, by: Sequence[str] = ("label", "sampler")) -> DataFrame:
        """Return how the trials of the selected executions ended, and quartiles of value and busy time, per group.

        `by`: columns of `trials`. Quartiles of values are over completed trials, those of busy times over trials that began.

        Raises:
            UnknownNameError: there is no such column.
        """
        return summary(self.read("trials", [*by, *(name for name in COLUMNS if name not in by)]), by)

    def _kept(self, table: str) -> DataFrame:
        if table not in self._read:
            self._read[table] = self.read(table)
        return self._read[table]


def load(results: str | os.PathLike[str]) -> Frames:
    """Return the tables of a results folder as data frames of pandas; each is read when it is first asked for.

    They come from `DIR/export` where that is in Parquet and current (`tuneoff export DIR --format parquet`), else from the
    records, which takes longer. An export that is not current is not used, and a warning says so.

    Raises:
        ResultsError: it is not a results folder.
        MissingPackageError: pandas or pyarrow is missing.
    """
    if missing := missing_modules(("pandas", "pyarrow")):
        raise MissingPackageError(f"data frames need {', '.join(missing)}; run: {install_command(*missing)}")
    folder = without_links(Path(results))
    read_plan(folder)  # says why it is none
    return Frames(folder, _current(folder))


def _export(folder: Path) -> str:
    return command("export", folder, "--format", "parquet")


def _current(folder: Path) -> str | None:
    """Return the key of the export, where it has a table in Parquet that is current."""
    tables = [path for table in TABLES if (path := folder / EXPORT / f"{table}.parquet").is_file()]
    if not tables:
        return None
    key = export_key(folder)
    for path in tables:
        with _opened(path, key) as file:
            if file is not None:
                return key
    log.warning(f"%s is not current; {AGAIN}", folder / EXPORT, _export(folder))
    return None


def _exported(path: Path, columns: Columns, names: list[str], key: str) -> Any:
    """Return columns of an exported table; None: it is damaged, of another export, or of another tuneoff."""
    import pyarrow

    try:
        with _opened(path, key) as file:
            form, today = file.schema_arrow if file is not None else None, schema(columns)
            if form is None or (form.names, form.types) != (today.names, today.types):
                return None
            return file.read(columns=names).select(names)
    except (OSError, pyarrow.ArrowException):
        return None


@contextlib.contextmanager
def _opened(path: Path, key: str) -> Iterator[Any]:
    """Yield the file of an exported table; None: it is damaged, or has another key."""
    import pyarrow
    from pyarrow import parquet

    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(parquet.ParquetFile(stack.enter_context(regular(path))))
        except (OSError, pyarrow.ArrowException):
            file = None
        yield file if file is not None and (file.schema_arrow.metadata or {}).get(KEY) == key.encode() else None


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
    columns = {prefix + name: _column([configuration.get(name) for configuration in configurations]).array for name in names}
    return pandas.concat([trials, pandas.DataFrame(columns, index=trials.index)], axis="columns")


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


def summary(trials: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return a row per group of the selected trials: see `Frames.summary`."""
    import numpy
    import pandas

    if not trials["is_selected"].all():
        trials = trials[trials["is_selected"]]

    # The number of each trial's group, and the groups: in the order of the tables, what is missing first.
    combined = numpy.zeros(len(trials), dtype=numpy.int64)
    columns = [pandas.Categorical(trials[name]) for name in by]
    for column in columns:
        combined = combined * (len(column.categories) + 1) + column.codes + 1
    group, groups = pandas.factorize(combined, sort=True)
    names: list[Any] = []
    for column in reversed(columns):
        groups, places = numpy.divmod(groups, len(column.categories) + 1)
        names.insert(0, pandas.Categorical.from_codes(places - 1, dtype=column.dtype))
    keys = pandas.Index(names[0], name=by[0]) if len(by) == 1 else pandas.MultiIndex.from_arrays(names, names=list(by))

    states = pandas.Categorical(trials["state"], categories=STATES)
    size = len(STATES) + 1  # one for a state that is none of them
    counts = numpy.bincount(group * size + states.codes + 1, minlength=len(keys) * size).reshape(len(keys), size)
    table: dict[str, Any] = {"trials": counts.sum(axis=1)}
    table.update({state: counts[:, index] for index, state in enumerate(STATES, 1)})
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


def _quartiles(name: str, values: numpy.ndarray, order: numpy.ndarray, sizes: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """Return the quartiles of each group's values, those that are NaN left out; NaN for a group without any.

    `order`: the trials by their groups, whose `sizes` follow each other.
    """
    import numpy

    quartiles = numpy.full((len(QUARTILES), len(sizes)), numpy.nan)
    for index, part in enumerate(numpy.split(values[order], numpy.cumsum(sizes)[:-1])):
        part = part[~numpy.isnan(part)]
        if part.size:
            quartiles[:, index] = numpy.percentile(part, list(QUARTILES.values()))
    return {name.format(quartile): row for quartile, row in zip(QUARTILES, quartiles, strict=True)}
