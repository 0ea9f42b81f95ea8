"""The live state on a terminal: the matrix and its current run stay at the bottom, what ended scrolls above.

The map of the matrix: a row per cell where they fit, else lines per adapter, else all in one.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TextIO, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from tuneoff.base.format import wrapped
from tuneoff.base.output import has_colour, printable
from tuneoff.tell.live import sentences
from tuneoff.tell.live.state import Activity, LiveState, SeedRow

# Letters and shapes that every terminal has: they tell the statuses apart without colour.
SIGNS = {"done": "#", "failed": "F", "timeout": "T", "interrupted": "I", "skipped": "-", "running": ">", "planned": "."}
IMPORTANCE = ("running", "failed", "timeout", "interrupted", "planned", "done", "skipped")  # which shows of several runs
STYLES = {
    "done": "green",
    "failed": "red",
    "timeout": "red",
    "interrupted": "yellow",
    "skipped": "dim",
    "running": "cyan",
    "planned": "dim",
}
GAP = "  "
LEAST_LABEL = 8  # characters of a label that is cut
MAP_SHARE = 3  # the map may have a third of the height


class Terminal:
    """Writes to a terminal. One that went away is not an error: what it shows must not end a matrix.

    `size`: columns and rows; None: those that it has.
    """

    every_seconds = 0.5  # a state is shown, at most

    def __init__(self, stream: TextIO, size: tuple[int, int] | None = None) -> None:
        columns, rows = size or (None, None)
        self.console = _Console(
            file=cast(TextIO, _Lasting(stream)),
            force_terminal=True,
            color_system="auto" if has_colour() else None,
            width=columns,
            height=rows,
        )
        self._live = Live(console=self.console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._view: View | None = None

    def line(self, text: str, style: str = "") -> None:
        """Write a line above the display, broken at blanks where it is longer than the terminal is wide."""
        self.console.print(Text("\n".join(wrapped([text], self.console.width - 1)), style), soft_wrap=True)

    def show(self, state: LiveState) -> None:
        """Show a state in place of the one before."""
        if self._view is None or self._view.state != state:
            self._view = View(state)
            self._live.start()
            self._live.update(self._view, refresh=True)

    def close(self) -> None:
        """Take the display away."""
        self._live.stop()


class _Console(Console):
    def show_cursor(self, show: bool = True) -> bool:
        """Leave the cursor as it is: a command that is killed could not show it again."""
        return False


class _Lasting(io.TextIOBase):
    """A terminal to which can be written when it is gone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


class View:
    """A state in no more lines than the terminal has rows but one, the least important left out first.

    The last column stays free, as some terminals wrap there.
    """

    def __init__(self, state: LiveState) -> None:
        self.state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, room = max(1, options.max_width - 1), max(1, options.size.height - 1)
        options = options.update(width=width, height=None, no_wrap=False, overflow="fold")
        parts = [console.render_lines(part, options, pad=False) for part in _parts(self.state, width, room)]
        kept: list[list[list[Segment]]] = [[] for _ in parts]
        for index in (4, 0, 5, 1, 3, 2, 6):  # the most important first
            if len(parts[index]) <= room:
                kept[index] = parts[index]
                room -= len(parts[index])
        for number, line in enumerate(line for part in kept for line in part):
            yield from [Segment.line()] if number else []
            yield from line


def _parts(state: LiveState, width: int, height: int) -> list[RenderableType]:
    """Return the parts of the display from top to bottom."""
    drawn, per_sign = map_lines(state.rows, width, max(1, height // MAP_SHARE))
    legend = [Text(f"{SIGNS[status]} {count} {status}", STYLES[status]) for status, count in state.counts.items() if count]
    legend += [Text(f"(a sign is {per_sign} runs)", "dim")] if per_sign > 1 else []
    gone = state.activity in (Activity.STOPPED, Activity.ELSEWHERE)
    current: RenderableType = Group()
    if between := sentences.between(state):
        current = Text(between, "dim")
    if state.current is not None:
        figures = Text(f" {sentences.trials_text(state.current.live)}")
        current = Group(Text(sentences.current_title(state.current), "cyan"), figures)
    return [
        Text("; ".join(filter(None, (sentences.headline(state), sentences.time_left(state)))), "bold"),
        Group(*drawn),
        Text(GAP).join(legend),
        Text(f"so far: {'; '.join(sentences.so_far(state))}") if state.so_far else Group(),
        current,
        Text(sentences.activity(state), "yellow") if gone else Group(),
        Group(*(Text(printable(f"cannot be read: {problem}"), "yellow") for problem in state.problems[:1])),
    ]


def map_lines(rows: Sequence[SeedRow], width: int, most: int) -> tuple[list[Text], int]:
    """Return the map in at most `most` lines (at least 1) of at most `width` columns, and for how many runs a sign stands.

    Where a line per row does not fit: some lines per adapter; of too many adapters all in one, without a name.
    """
    seeds = max((len(row.cells) for row in rows), default=0)
    texts = [printable(row.text) for row in rows]
    label = min(max(map(cell_len, texts), default=0), max(LEAST_LABEL, width - 1 - seeds))
    if len(rows) <= most and label + 1 + seeds <= width:
        cells = ([cell.status if cell is not None else None for cell in row.cells] for row in rows)
        return [_line(text, label, statuses) for text, statuses in zip(texts, cells, strict=True)], 1
    runs: dict[str, list[str]] = {}  # statuses by adapter
    for row in rows:
        runs.setdefault(printable(row.adapter), []).extend(cell.status for cell in row.cells if cell is not None)
    label = min(max(map(cell_len, runs), default=0), max(LEAST_LABEL, width // 3))
    if len(runs) > most or width - label - 1 < LEAST_LABEL:
        runs, label = {"": [status for statuses in runs.values() for status in statuses]}, 0
    room = width - label - bool(label)
    per_sign = max(1, *(-(-len(statuses) // (room * (most // len(runs)))) for statuses in runs.values()))
    lines = []
    for adapter, statuses in runs.items():
        signs = [most_important(statuses[start : start + per_sign]) for start in range(0, len(statuses), per_sign)]
        for start in range(0, len(signs), room):
            lines.append(_line("" if start else adapter, label, signs[start : start + room]))
    return lines, per_sign


def most_important(statuses: Iterable[str]) -> str:
    """Return the status that a sign for several runs shows: what needs attention is never hidden by what does not."""
    return min(statuses, key=IMPORTANCE.index)


def _line(name: str, label: int, statuses: Sequence[str | None]) -> Text:
    """Return a name in so many columns, without its middle where it is too long (names differ at both ends), and signs."""
    if cell_len(name) > label >= LEAST_LABEL:
        end = (label - 2) // 2
        name = f"{name[: label - 2 - end]}..{name[len(name) - end :]}"
    text = Text(name, no_wrap=True)
    text.truncate(label, overflow="crop", pad=True)
    text.append(" " if label else "")
    for status, group in groupby(statuses):
        text.append((SIGNS[status] if status is not None else " ") * len(list(group)), STYLES.get(status or ""))
    return text
