"""A user's code prints whatever it likes: not to standard output, where results go; and what a terminal shows of it at last."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator

_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, erasing, moving: ECMA-48, 5.4
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles and links
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@contextlib.contextmanager
def output_as_errors() -> Iterator[None]:
    """Send to standard error what is printed to standard output, by children too."""
    with descriptor_as_errors(), contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def descriptor_as_errors() -> Iterator[None]:
    """Do so with what goes to the descriptor alone: who keeps `sys.stdout` in this block has the one that prints there later."""
    with contextlib.ExitStack() as after:
        with contextlib.suppress(OSError, AttributeError):  # one of them is closed
            sys.stdout.flush()
            output = os.dup(1)
            after.callback(os.close, output)
            after.callback(os.dup2, output, 1)
            after.callback(sys.stdout.flush)
            os.dup2(2, 1)
        yield


def shown_line(line: str) -> str:
    """Return what stands in a line at last: what came after the last carriage return, without codes, white space at its ends.

    A bar that is drawn anew by backspaces is shortened by them, as its program means it.
    """
    text = _CODES.sub("", line)
    if "\b" in text:
        kept: list[str] = []
        for character in text:
            if character != "\b":
                kept.append(character)
            elif kept and kept[-1] != "\r":
                kept.pop()
        text = "".join(kept)
    parts = (_CONTROLS.sub("", part).strip() for part in reversed(text.split("\r")))
    return next((part for part in parts if part), "")


def last_shown(text: str) -> str:
    """Return the last line of a text in which something stands; "" if there is none."""
    lines = (shown_line(line) for line in reversed(text.split("\n")))
    return next((line for line in lines if line), "")
