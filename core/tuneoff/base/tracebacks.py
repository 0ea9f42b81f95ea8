"""What a user needs of an exception in his own code: the line of his file, and the whole traceback where he looks."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

from tuneoff.base.code_digest import PACKAGES
from tuneoff.base.files import open_regular, open_to_change
from tuneoff.base.layout import LOG

FIRST_LINE = "Traceback (most recent call last):"
_MOST_CHARACTERS = 20_000  # of one traceback: a message may hold an array
_MOST_BYTES = 2_000_000  # of a log, from its end
_BLOCK = re.compile(rf"^{re.escape(FIRST_LINE)}\n(?:[ \t].*\n|\n)*\S.*", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")  # not by `sysconfig`: each trial's process would import it
_LIBRARY = os.path.dirname(traceback.__file__) + os.sep


def log_bytes(run_dir: Path | str) -> int:
    """Return how long the log of a run is, with what this process has printed; 0 where it has none, as in a pod."""
    with contextlib.suppress(Exception):  # a training may have put anything in their place
        sys.stdout.flush()
        sys.stderr.flush()
    try:
        return os.lstat(os.path.join(run_dir, LOG)).st_size
    except OSError:
        return 0


def origins(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that it came of, each once: those of a database's session refer to each other in a ring."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += [current.__context__, current.__cause__]


def described(error: BaseException) -> str:
    """Return the type, the first line of the text and the place in the user's own code: `ValueError: no data (train.py:16)`.

    Without addresses in memory: the same fault is to have the same reason in each trial.
    """
    lines = _ADDRESS.sub("", text_of(error)).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return f"{text}{source_line(error)}"


def text_of(error: BaseException) -> str:
    """Return the text of an exception of a user's code; "" where that code fails in giving it."""
    try:
        return str(error)
    except Exception:
        return ""


def source_line(error: BaseException) -> str:
    """Return ` (train.py:16)`: the innermost frame of code that is neither tuneoff's nor installed; else of a plugin's; else "".

    Tuneoff's own adapters and workloads are no plugins, nor is a framework below them: a user has no line there to mend.

    Where the error has no such frame its cause is asked: an import that failed is wrapped.
    """
    current: BaseException | None = error
    while current is not None:
        if where := _source_line(traceback.walk_tb(current.__traceback__)):
            return where
        current = current.__cause__
    return ""


def calling_line() -> str:
    """Return the same of what is being called now."""
    return _source_line(reversed(list(traceback.walk_stack(sys._getframe(1)))))


def _source_line(frames: Iterable[tuple[FrameType, int]]) -> str:
    """Return the text of `source_line`; `frames`: with their lines, from the outermost on."""
    plugin: str | None = None
    origin: str | None = None
    for frame, line in frames:
        file = frame.f_code.co_filename
        module = frame.f_globals.get("__package__") or frame.f_globals.get("__name__", "")  # of `python -m` the package tells
        is_installed = _PACKAGES.search(file) is not None
        package = str(module).partition(".")[0]
        if package in PACKAGES:
            plugin = plugin or (None if package == "tuneoff" else "")
            continue
        if file.startswith("<frozen") or (file.startswith(_LIBRARY) and not is_installed):
            continue
        here = f" ({os.path.basename(file)}:{line})"
        plugin = here if plugin is None else plugin
        origin = origin if is_installed else here
    return origin or plugin or ""


def log_traceback(run_dir: str, title: str, error: BaseException, *, to_stderr: bool = False) -> None:
    """Append the traceback to an execution's log, or write it to standard error: a pod has no other way out."""
    text = f"{title}\n{''.join(traceback.format_exception(error))[:_MOST_CHARACTERS].rstrip()}\n"
    if to_stderr:
        sys.stderr.write(text)
        return
    with contextlib.suppress(OSError):  # a full disk: the event says what happened
        descriptor = open_to_change(Path(run_dir) / LOG, os.O_WRONLY | os.O_APPEND)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)


def logged_tracebacks(log: Path, most: int = 5) -> list[str]:
    """Return the last distinct tracebacks of an execution's log, in their order; none where it cannot be read."""
    try:
        with open_regular(log) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return list(dict.fromkeys(_BLOCK.findall(text)))[-most:]
