"""The live display of the matrix that this process runs: the map and the current run stay, runs that ended scroll above."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator

from tuneoff.base.format import wrapped
from tuneoff.base.output import printable
from tuneoff.run.listener import Listener, LiveRun
from tuneoff.tell.live.board import Board
from tuneoff.tell.live.footer import Footer
from tuneoff.tell.live.picture import STYLES
from tuneoff.tell.live.screen import screen
from tuneoff.tell.report.progress import end_text

SHOW_EVERY_SECONDS = 0.5


class LiveProgress(Listener):
    """A listener that draws. It draws a few times per second at most, and only what differs."""

    def __init__(self, footer: Footer, board: Board, clock: Callable[[], float] = time.monotonic) -> None:
        self._footer, self._board, self._clock = footer, board, clock
        self._shown: float | None = None

    def noted(self, text: str) -> None:
        for line in wrapped([printable(text)], self._footer.size()[0]):
            self._footer.print(line, "bad" if text.startswith("! ") else "")

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        self._board.started(run_id, position, total, label)
        self._show()

    def run_progress(self, live: LiveRun) -> None:
        self._board.progressed(live)
        if self._is_due():
            self._show()

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        if seconds:  # what this command does not run is on the map already
            self._board.ended(status, reason, seconds)
            text = printable(f"[{position}/{total}] {label}: {end_text(status, reason, seconds)}")
            self._footer.print(text, STYLES.get(status, "bad"))
            self._show()

    def close(self) -> None:
        """Take the display away."""
        self._footer.close()

    def _is_due(self) -> bool:
        return self._shown is None or self._clock() - self._shown >= SHOW_EVERY_SECONDS

    def _show(self) -> None:
        self._shown = self._clock()
        self._footer.show(screen(self._board.state(), *self._footer.size()))


class Above(io.TextIOBase):
    """What is written to it appears above a footer, line by line: log messages, warnings of libraries."""

    def __init__(self, footer: Footer) -> None:
        self._footer, self._rest = footer, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._footer.print(_visible(line))
        return len(text)

    def end(self) -> None:
        """Write what has no end of line."""
        if self._rest:
            self._footer.print(_visible(self._rest))
            self._rest = ""


def _visible(line: str) -> str:
    """Return a line without what would move the cursor; of one that was written over, what stood there last."""
    return printable(line.rstrip("\r").rpartition("\r")[2].expandtabs())


@contextlib.contextmanager
def shown(footer: Footer, board: Board) -> Iterator[LiveProgress]:
    """Yield the display; until the block ends, standard error goes above it."""
    live, above = LiveProgress(footer, board), Above(footer)
    try:
        with contextlib.redirect_stderr(above):
            yield live
    finally:
        above.end()
        live.close()
