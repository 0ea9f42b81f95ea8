"""Progress: of the matrix that this process runs, by its listener, and of one that is watched until it has ended.

On a terminal it is a live display, plain lines anywhere else.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tuneoff.base.output import plain_line, printable
from tuneoff.experiment.plan import Plan
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.tell.live import sentences
from tuneoff.tell.live.state import LiveState, cells_of
from tuneoff.tell.live.watcher import NOT_ENDED, Watcher

if TYPE_CHECKING:
    from tuneoff.tell.live.terminal import Terminal

LOOK_EVERY_SECONDS = 1.0  # of who watches
AGAIN_SECONDS = 0.2  # an end is believed when it is seen twice: a command may be between two writes to the lock
END_STYLES = {"done": "green", "interrupted": "yellow"}

Clock = Callable[[], float]


class Lines:
    """Plain lines: what ended, when another run begins, and every ten seconds where it stands."""

    every_seconds = 10.0  # a state is shown, at most

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._next = -1.0  # when the state is shown again
        self._run_id = ""

    def line(self, text: str, style: str = "") -> None:
        """Write a line."""
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def show(self, state: LiveState) -> None:
        """Write where the matrix stands, if it is time to."""
        current = state.current
        is_next = current is not None and current.run_id != self._run_id
        if state.exit_code is not None or not (is_next or self._clock() >= self._next):
            return
        self._run_id = current.run_id if current is not None else ""
        self._next = self._clock() + self.every_seconds
        title = f"{sentences.current_title(current)} ({current.run_id}): {sentences.trials_text(current.live)}" if current else ""
        self.line("; ".join(filter(None, (sentences.headline(state), title, sentences.time_left(state)))))

    def close(self) -> None:
        """Do nothing: lines stay."""


def output_on(stream: TextIO, clock: Clock = time.monotonic) -> Terminal | Lines:
    """Return what shows a state on a stream: a terminal on which lines can be replaced, or any other."""
    if not (stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"):
        return Lines(stream, clock)
    from tuneoff.tell.live.terminal import Terminal

    return Terminal(stream)


class Progress(Listener):
    """Shows the matrix that this process runs. A reader that went away must not end it."""

    def __init__(self, output: Terminal | Lines, watcher: Watcher, clock: Clock = time.monotonic) -> None:
        self._output, self._watcher, self._clock = output, watcher, clock
        self._shown_at = 0.0

    def noted(self, text: str) -> None:
        self._line(printable(text), "red" if text.startswith("! ") else "")

    def begun(self, run_ids: Sequence[str]) -> None:
        self._watcher.to_run.update(run_ids)

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        self._watcher.begin(run_id, label, position, total)
        self._show(self._watcher.look())

    def run_progress(self, live: LiveRun) -> None:
        if self._watcher.current is not None and self._clock() - self._shown_at >= self._output.every_seconds:
            self._watcher.current = replace(self._watcher.current, live=live)
            self._show(self._watcher.state())

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        if seconds:  # what this command does not run is on the map already
            self._watcher.current = None
            text = printable(f"[{position}/{total}] {label}: {sentences.end_text(status, reason, seconds)}")
            self._line(text, END_STYLES.get(status, "red"))
            self._show(self._watcher.look())

    def _line(self, text: str, style: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._output.line(text, style)

    def _show(self, state: LiveState) -> None:
        self._shown_at = self._clock()
        with contextlib.suppress(OSError, ValueError):
            self._output.show(state)


class Above(io.TextIOBase):
    """What is written to it appears above the display, line by line: log messages, warnings of libraries."""

    def __init__(self, output: Terminal | Lines) -> None:
        self._output, self._rest = output, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:  # without what would move the cursor; of one that was written over, what stood there last
            self._output.line(printable(line.rstrip("\r").rpartition("\r")[2].expandtabs()))
        return len(text)

    def end(self) -> None:
        """Write what has no end of line."""
        self.write("\n" if self._rest else "")


@contextlib.contextmanager
def progress(stream: TextIO, plan: Plan, results: Path) -> Iterator[Listener]:
    """Yield what shows progress on `stream`; until the block ends, standard error goes above a display."""
    output = output_on(stream)
    listener = Progress(output, Watcher(results, plan))
    if isinstance(output, Lines):
        yield listener
        return
    above = Above(output)
    try:
        with contextlib.redirect_stderr(above):
            yield listener
    finally:
        above.end()
        output.close()


def watch(watcher: Watcher, stream: TextIO, wait: Callable[[float], None] = time.sleep, clock: Clock = time.monotonic) -> int:
    """Show the folder's state until nobody works there any more, and return the exit code of that.

    Raises:
        ResultsError: the folder is gone, or its plan is damaged.
    """
    before: LiveState | None = None
    with contextlib.closing(output_on(stream, clock)) as output:
        while True:
            state = watcher.look()
            for text, style in _ends(before, state):
                output.line(text, style)
            output.show(state)
            if state.exit_code is not None and before is not None and before.exit_code is not None:
                break
            wait(LOOK_EVERY_SECONDS if state.exit_code is None else AGAIN_SECONDS)
            before = state
    for line in sentences.lines(state):
        stream.write(f"{plain_line(line)}\n")
    stream.flush()
    return state.exit_code


def _ends(before: LiveState | None, state: LiveState) -> list[tuple[str, str]]:
    """Return line and style of each run that ended between two looks."""
    unended = {cell.run_id for cell in cells_of(before.rows if before is not None else ()) if cell.status in NOT_ENDED}
    return [
        (
            printable(f"{cell.name}: {sentences.end_text(cell.status, cell.reason, cell.seconds or 0.0)}"),
            END_STYLES.get(cell.status, "red"),
        )
        for cell in cells_of(state.rows)
        if cell.status not in NOT_ENDED and cell.run_id in unended
    ]
