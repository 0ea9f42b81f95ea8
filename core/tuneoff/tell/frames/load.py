"""A results folder as data frames, read when they are asked for: from a current export in Parquet, else from the records."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cached_property
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
    from pandas import DataFrame, Series

INT64 = range(-(2**63), 2**63)
AGAIN = "the records are read instead; for speed export again: %s"

log = logging.getLogger(__name__)
COLUMNS = ("is_selected", "state", "value", "started_seconds", "busy_seconds")  # of `trials`, beside those to group by
STATES: tuple[str, ...] = get_args(TrialState)
SUCCESSES, FAILURES = ("completed", "pruned"), ("failed", "timed_out")
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}


class Frames:
    """The tables of a results folder. Each attribute is a data frame, read once, when it is first asked for.

    All executions are in them: `is_selected` marks those that stand for their runs, `warm_up` those that count nowhere.
    """

    def __init__(self, folder: Path, key: str | None) -> None:
        """Use `load`. `key`: of the export that is current; None: the records are read."""
        self.folder = folder
        self._key = key

    @cached_property
    def source(self) -> Literal["export", "records"]:
        """Where tables are read from."""
        return "records" if self._key is None else "export"

    @cached_property
    def runs(self) -> DataFrame:
        """One row per execution."""
        return self.read("runs")

    @cached_property
    def trials(self) -> DataFrame:
        """One row per trial."""
        return self.read("trials")

    @cached_property
    def epochs(self) -> DataFrame:
        """One row per epoch and metric."""
        return self.read("epochs")

    @cached_property
    def metrics(self) -> DataFrame:
        """One row per metric of an execution."""
        return self.read("metrics")

    @cached_property
    def steps(self) -> DataFrame:
        """One row per execution and part of its job completion time."""
        return self.read("steps")

    @cached_property
    def declared(self) -> DataFrame:
        """One row per execution and declared variable."""
        return self.read("declared")

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
    """Return the key of the export in Parquet, where it is current."""
    path = folder / EXPORT / "runs.parquet"
    if not path.is_file():
        return None
    key = export_key(folder)
    if _exported(path, TABLES["runs"], ["run_id"], key) is not None:
        return key
    log.warning(f"%s is not current; {AGAIN}", folder / EXPORT, _export(folder))
    return None


def _exported(path: Path, columns: Columns, names: list[str], key: str) -> Any:
    """Return columns of an exported table; None: it is damaged, of another export, or of another tuneoff."""
    import pyarrow
    from pyarrow import parquet

    try:
        with regular(path) as content, parquet.ParquetFile(content) as file:
            form, today = file.schema_arrow, schema(columns)
            is_same = (form.names, form.types, (form.metadata or {}).get(KEY)) == (today.names, today.types, key.encode())
            return file.read(columns=names).select(names) if is_same else None
    except (OSError, pyarrow.ArrowException):
        return None


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
    selected = trials[trials["is_selected"]]
    figures = selected.assign(
        trials=1,
        completed_value=selected["value"].where(selected["state"] == "completed"),
        busy=selected["busy_seconds"].where(selected["started_seconds"].notna()),
        **{state: (selected["state"] == state).astype("int64") for state in STATES},
    )
    groups = figures.groupby(list(by), observed=True, dropna=False)
    table = groups[["trials", *STATES]].sum()
    table["failures"] = sum(table[state] for state in FAILURES)
    table["success_share"] = sum(table[state] for state in SUCCESSES) / table["trials"]
    for name, column in (("value_{}", "completed_value"), ("busy_{}_seconds", "busy")):
        for quartile, share in QUARTILES.items():
            table[name.format(quartile)] = groups[column].quantile(share)
    return table
