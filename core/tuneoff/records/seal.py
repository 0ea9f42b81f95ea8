"""Seal event files: their SHA-256 in `run.json`, so that a later change shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.records.model import SealedFile


def seal(folder: Path) -> tuple[SealedFile, ...]:
    """Return the digests of all files in a folder of events, by name.

    Raises:
        ResultsError: a file cannot be read.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())
        return tuple(_sealed(path) for path in paths)
    except OSError as error:
        raise ResultsError(f"{error.filename or folder} cannot be sealed: {error.strerror}") from error


def broken_seals(folder: Path, sealed: Sequence[SealedFile]) -> list[str]:
    """Return one line per file that is missing, changed, or not sealed; an empty list if all is as it was sealed.

    Raises:
        ResultsError: a file cannot be read.
    """
    now = {file.name: file for file in seal(folder)}
    problems = []
    for file in sealed:
        found = now.pop(file.name, None)
        if found is None:
            problems.append(f"{file.name} is missing")
        elif found != file:
            problems.append(
                f"{file.name} changed: sealed with {file.size_bytes} bytes and {file.sha256[:12]}, "
                f"now {found.size_bytes} bytes and {found.sha256[:12]}"
            )
    return problems + [f"{name} was added after the seal" for name in sorted(now)]


def _sealed(path: Path) -> SealedFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SealedFile(name=path.name, size_bytes=path.stat().st_size, sha256=digest)
