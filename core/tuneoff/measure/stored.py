"""Read the record of an execution: from `run.json` where that has the key of its raw files, else derived from these anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tuneoff.base.files import read_regular
from tuneoff.base.layout import END, RECORD
from tuneoff.errors import ResultsError
from tuneoff.record.end import broken_seals, end_bytes, key_of, read_end, read_spec
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import cached_run, encode, ended_executions


def read_run(folder: Path) -> RunRecord:
    """Return the record of an execution's folder. A `run.json` that is missing, damaged or of other files only costs time.

    Raises:
        ResultsError: its `end.json` cannot be read, or there is no such record and its raw files are not as they were sealed,
            or of another run than its folder is named after.
    """
    end = end_bytes(folder)
    try:
        record = cached_run(read_regular(folder / RECORD), key_of(end))
    except OSError:
        record = None
    return record if record is not None and is_of(folder, record) else derived_run(folder, end)


def is_of(folder: Path, record: RunRecord) -> bool:
    """Tell whether a record is of the run and execution that its folder is named after: `runs/<run id>/<execution id>/`."""
    return folder.parts[-2:] == (record.run_id, record.execution_id)


def read_runs(results: Path) -> Iterator[RunRecord]:
    """Yield the records of all executions in a results folder that have ended, one at a time.

    Raises:
        ResultsError: see read_run and ended_executions.
    """
    yield from map(read_run, ended_executions(results))


def derived_run(folder: Path, end: bytes) -> RunRecord:
    """Derive the record of an execution from its raw files; `end`: the text of its `end.json`.

    Raises:
        ResultsError: see read_run.
    """
    from tuneoff.measure.derived import derive_folder

    stated = read_end(folder, end)
    for broken in broken_seals(folder, stated.sealed):
        raise ResultsError(f"{folder / broken.name} {broken.problem}; restore it, or remove the execution's folder")
    key = key_of(end)
    try:
        record = derive_folder(folder, read_spec(folder), stated).record
        if not is_of(folder, record):
            text = f"{folder / END} is of run {record.run_id}, which is another place"
            raise ResultsError(f"{text}; move its folder there, or remove it")
        return cached_run(b"".join(encode(record, key)), key) or record  # to the type of each number as if it had been stored
    except ResultsError:
        raise
    except Exception as error:  # altered files may break any rule of the derivation
        text = f"{folder / END}: the record cannot be derived from its files: {type(error).__name__}: {error}"
        raise ResultsError(f"{text}; restore them, or remove the execution's folder") from error
