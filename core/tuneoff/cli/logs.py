"""Where log messages and tracebacks go."""

from __future__ import annotations

import logging
import sys
import tempfile
import traceback
from typing import TextIO

from tuneoff.base.output import plain_line


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to whatever `sys.stderr` is at the moment: the live display replaces it while it is shown."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class _OneLine(logging.Formatter):
    """Each message is one line, whatever text of a user or of a file is in it."""

    def format(self, record: logging.LogRecord) -> str:
        return plain_line(super().format(record))


def set_up(debug: bool) -> None:
    """Send messages of tuneoff to standard error: warnings, or everything with `debug`."""
    logger = logging.getLogger("tuneoff")
    for handler in list(logger.handlers):
        if isinstance(handler, _StandardError):
            logger.removeHandler(handler)
    handler = _StandardError()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s") if debug else _OneLine("tuneoff: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)


def save_traceback(error: BaseException) -> str:
    """Write the traceback to a new file and return its path, or why there is none."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="tuneoff-fault-", suffix=".txt", delete=False) as file:
            file.writelines(traceback.format_exception(error))
    except OSError as problem:
        return f"nowhere ({problem.strerror}); use --debug"
    return file.name
