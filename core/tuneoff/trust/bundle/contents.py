"""What of a results folder goes into its bundle: the plan, and of each execution its record and raw files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.files import regular
from tuneoff.errors import ResultsError
from tuneoff.record.digests import BESIDE
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import EARLIER
from tuneoff.record.history import FILE_NAME as CONTINUES
from tuneoff.record.layout import SPEC, VERSIONS
from tuneoff.record.results_folder import PLAN
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import FILE_NAME as RECORD
from tuneoff.record.store import RUNS, read_run
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff.trust.bundle.archive import Content
from tuneoff.trust.bundle.manifest import RESULTS
from tuneoff.trust.bundle.opened import is_readable

SINGLE = (RECORD, SPEC, VERSIONS, CONTINUES, *BESIDE)  # of an execution, where they are there
LEFT_OUT = "log.txt, the framework's own files, exports, the report, locks and notes of processes"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledExecution:
    """An execution of the results folder; `record` is None where its command was killed before it had one."""

    folder: Path
    record: RunRecord | None


def executions(results: Path) -> list[BundledExecution]:
    """Return every execution in a fixed order.

    Raises:
        ResultsError: a folder or record cannot be read.
    """
    try:
        folders = sorted(path for path in (results / RUNS).glob("*/*") if path.is_dir())
        return [BundledExecution(folder=path, record=_record(path) if (path / RECORD).exists() else None) for path in folders]
    except OSError as error:
        raise ResultsError(f"{results} cannot be read: {error.strerror}") from error


def _record(folder: Path) -> RunRecord:
    record = read_run(folder)
    if not is_readable(record):
        raise ResultsError(f"{folder / RECORD} is damaged: its environment or specification cannot be read; run it again")
    return record


def result_files(results: Path, found: list[BundledExecution], *, checkpoints: bool) -> dict[str, Content]:
    """Return the files of a results folder that a bundle holds, by their path in the bundle.

    Raises:
        ResultsError: one cannot be read, or is no plain file (a link could hold what is not meant for others).
    """
    paths = [results / PLAN]
    for execution in found:
        paths += _of_execution(execution, checkpoints)
    for path in paths:
        try:
            with regular(path):
                pass
        except OSError as error:
            raise ResultsError(f"{path} cannot be bundled: {error.strerror}; replace or remove it") from error
    return {f"{RESULTS}/{path.relative_to(results).as_posix()}": path for path in paths}


def _of_execution(execution: BundledExecution, checkpoints: bool) -> Iterator[Path]:
    folder, record = execution.folder, execution.record
    yield from (folder / name for name in SINGLE if (folder / name).exists())
    for events in (folder / EVENTS, folder / "later" / EVENTS):
        if events.is_dir():
            yield from sorted(events.iterdir())
    if (folder / EARLIER).is_dir():
        yield from sorted(path for path in (folder / EARLIER).rglob("*") if not path.is_dir())
    if checkpoints and record is not None and record.test is not None and record.test.checkpoint_sha256 is not None:
        path = checkpoint_path(folder, record.test.trial)
        if path.exists():
            yield path
