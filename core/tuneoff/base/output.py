"""Results go to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from tuneoff.base.commands import split_command
from tuneoff.base.format import wrapped
from tuneoff.base.json_values import plain
from tuneoff.errors import ResultsError

# JSON may hold these as they are, and a terminal obeys them: control characters, and what turns the direction of a text
_CONTROLS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# what is red on a terminal: a line or a name that is marked, an answer in capitals, a status in a table, a number of failures
_BAD = re.compile(
    r"^! .*|! [a-z_]+|\b(?:FAILED|NOT [A-Z]+|DOES NOT CONFORM|DIFFERENT)\b|(?:^|(?<=  ))(?:fail|failed|timeout)\b"
    r"|\b[1-9]\d* (?:failed|timeout)\b",
    re.MULTILINE,
)
BAR = "\\|"  # in a cell of Markdown
LONGEST_LINE = 1200  # characters: a few lines of a terminal
GAP = "  "  # between the columns of a table
NARROWEST = 5  # letters of a column, on average, below which a table is not made narrower


def write(text: str) -> None:
    """Write lines to standard output: on a terminal none is wider than that, and what is bad is red.

    Raises: as `write_exactly`.
    """
    lines = "\n".join(wrapped(text.split("\n"), terminal_width()))
    write_exactly(_BAD.sub("\x1b[31m\\g<0>\x1b[0m", lines) if terminal_width() is not None and has_colour() else lines)


def has_colour() -> bool:
    """Tell whether a terminal is to have colours (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def write_exactly(text: str) -> None:
    """Write lines to standard output. One that was a terminal which is gone is not an error: nobody waits for them.

    Raises:
        BrokenPipeError: the reader is gone.
        ResultsError: standard output is a file on a full disk.
    """
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno == errno.EIO and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode):
            return
        raise ResultsError(f"standard output must be writable, but: {error.strerror}; free space or write elsewhere") from error


def write_json(value: Any) -> None:
    """Write a value to standard output as JSON; null for a number that JSON has not (infinity, NaN)."""
    text = json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False)
    text = _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    write_exactly(text.encode("utf-8", "backslashreplace").decode())  # half a character, as only JSON escapes can write it


def note(text: str) -> None:
    """Write one line to standard error; where it cannot be written (its terminal is gone, its disk is full) nobody misses it."""
    with contextlib.suppress(OSError):
        print(plain_line(text), file=sys.stderr, flush=True)


def note_on_terminal(text: str) -> None:
    """Do as `note` where somebody may look: progress is for a terminal alone."""
    if sys.stderr.isatty():
        note(text)


def plain_line(text: str) -> str:
    """Return `text` as one line that a terminal only shows, without its middle where it is long: an error ends in its way out."""
    line = printable(one_line(text))
    if len(line) <= LONGEST_LINE:
        return line
    kept = LONGEST_LINE - len(f" [... {len(line)} characters ...] ")
    begin, end = kept * 2 // 3, kept // 3
    return f"{line[:begin]} [... {len(line) - begin - end} characters ...] {line[-end:]}"


def one_line(text: str) -> str:
    """Return `text` with every run of white space as one blank."""
    return " ".join(text.split())


def terminal_width() -> int | None:
    """Return how many columns standard output has; None where it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def printable(text: str) -> str:
    """Return `text` with what a terminal would obey, or could not be encoded, as escapes: `\\x1b`, `\\ud800`."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in text)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], margin: int = 0) -> str:
    """Return an aligned table; on a terminal its widest cells go on in further lines, so that it fits beside a margin.

    A command at the end of a row that does is on a line of its own, which a shell takes as it is.
    """
    table = [[name.upper() for name in header], *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    width = terminal_width()
    if width is not None:
        words = [max(len(word) for cell in cells for word in (*cell.split(), "")) for cells in zip(*table, strict=True)]
        room = max(width - margin - len(GAP) * (len(widths) - 1), NARROWEST * len(widths))
        while sum(widths) > room:  # the widest columns get narrower: those first that are wider than their longest word
            able = [column for column, longest in enumerate(words) if widths[column] > longest] or range(len(widths))
            widths[max(able, key=widths.__getitem__)] -= 1
    lines = []
    for row in table:
        text, command = split_command(row[-1]) if len(row[-1]) > widths[-1] else (row[-1], "")
        cells = [
            [cell] if len(cell) <= width else textwrap.wrap(cell, width, break_on_hyphens=False)
            for cell, width in zip((*row[:-1], text), widths, strict=True)
        ]
        for parts in zip_longest(*cells, fillvalue=""):
            lines.append(GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())
        lines += [f"{GAP}{command}"] if command else []
    return "\n".join(lines)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    first, *others = (f"| {' | '.join(one_line(cell).replace('|', BAR) for cell in line)} |" for line in (header, *rows))
    return [first, f"|{'---|' * len(header)}", *others]


def filled_columns(header: Sequence[str], rows: Sequence[Sequence[str]], optional: Sequence[str]) -> str:
    """Return an aligned table in which an `optional` column is left out that is empty, or told once that never differs."""
    same = {}
    for name, cells in zip(header, zip(*rows, strict=True), strict=False):
        if name in optional and len(set(cells)) == 1 and (len(cells) > 1 or not cells[0]):
            same[name] = cells[0]
    kept = [column for column, name in enumerate(header) if name not in same]
    table = columns([header[column] for column in kept], [[row[column] for column in kept] for row in rows])
    same_text = ", ".join(f"{name} {printable(text)}" for name, text in same.items() if text)
    return f"{table}\nin all: {same_text}" if same_text else table
