"""The list of the executions that were begun in a results folder: what tells that one was removed whole."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tuneoff.base.files import append_line, open_to_change, read_regular
from tuneoff.errors import ResultsError

FILE_NAME = ".executions"
_LINE = re.compile(rb"([0-9a-zA-Z][0-9a-zA-Z._-]*)/([0-9a-zA-Z][0-9a-zA-Z._-]*)\n")


def note_begun(results: Path, run_id: str, execution_id: str) -> None:
    """Add an execution, whose folder is there by now, to the list.

    Raises:
        ResultsError: the list cannot be written.
    """
    path = results / FILE_NAME
    try:
        descriptor = open_to_change(path, os.O_WRONLY | os.O_APPEND)
        try:
            append_line(descriptor, f"{run_id}/{execution_id}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ResultsError(f"{path} cannot be written: {error.strerror}; free space or choose another --output") from error


def begun(results: Path) -> list[tuple[str, str]]:
    """Return (run id, execution id) of each execution of the list, in its order; none where there is no list.

    Raises:
        OSError: it cannot be read.
    """
    try:
        content = read_regular(results / FILE_NAME)
    except FileNotFoundError:
        return []
    found = (_LINE.fullmatch(line) for line in content.splitlines(keepends=True))  # a kill may have cut the last one
    return [(line[1].decode(), line[2].decode()) for line in found if line is not None]
