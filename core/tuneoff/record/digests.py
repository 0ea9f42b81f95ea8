"""Seal the raw files of an execution: their SHA-256 in `run.json`, so that a later change shows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tuneoff.base.files import open_regular
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import FILE_NAME as ACCOUNTING
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import EARLIER
from tuneoff.record.history import FILE_NAME as CONTINUES
from tuneoff.record.layout import TEST_RESULT
from tuneoff.record.run_record import SealedFile
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES

BESIDE = (ACCOUNTING, SAMPLES, TEST_RESULT, CONTINUES)  # sealed beside the event files, where they are there


class BrokenSeal(NamedTuple):
    """A file that is not as it was sealed, and how."""

    name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


def seal(run_dir: Path) -> tuple[SealedFile, ...]:
    """Return the digests of an execution's raw files, by their path in its folder: all in `events/` and
    `earlier/`, and those of `BESIDE`.

    Raises:
        ResultsError: a file cannot be read.
    """
    try:
        paths = sorted(path for path in (run_dir / EVENTS).iterdir() if path.is_file())
        paths += [path for path in (run_dir / name for name in BESIDE) if path.is_file()]
        paths += sorted(path for path in (run_dir / EARLIER).rglob("*") if path.is_file())
        return tuple(_sealed(path, path.relative_to(run_dir).as_posix()) for path in paths)
    except OSError as error:
        raise ResultsError(f"{error.filename or run_dir} cannot be sealed: {error.strerror}") from error


def broken_seals(run_dir: Path, sealed: Sequence[SealedFile]) -> list[BrokenSeal]:
    """Return the files that are missing, changed, or not sealed; an empty list if all is as it was sealed.

    Raises:
        ResultsError: a file cannot be read.
    """
    return list(compare_seals(sealed, seal(run_dir)))


def compare_seals(sealed: Sequence[SealedFile], now: Sequence[SealedFile]) -> Iterator[BrokenSeal]:
    """Yield how the files of today differ from those that were sealed."""
    found = {file.name: file for file in now}
    for file in sealed:
        today = found.pop(file.name, None)
        if today is None:
            yield BrokenSeal(file.name, "is missing")
        elif (today.size_bytes, today.sha256) != (file.size_bytes, file.sha256):
            was = f"sealed with {file.size_bytes} bytes and {file.sha256[:12]}"
            yield BrokenSeal(file.name, f"changed: {was}, now {today.size_bytes} bytes and {today.sha256[:12]}")
    for name in sorted(found):
        yield BrokenSeal(name, "was added after the seal")


def _sealed(path: Path, name: str) -> SealedFile:
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SealedFile(name=name, size_bytes=path.stat().st_size, sha256=digest)
