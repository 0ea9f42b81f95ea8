"""Show a results folder until its matrix has ended: live on a terminal, line by line anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from tuneoff.base.output import has_colour, plain_line, printable
from tuneoff.tell.live import sentences
from tuneoff.tell.live.footer import Footer, is_terminal
from tuneoff.tell.live.screen import STYLES, screen
from tuneoff.tell.live.state import LiveState, cells_of
from tuneoff.tell.live.watcher import Watcher
from tuneoff.tell.report.progress import LINE_EVERY_SECONDS, end_text

LOOK_EVERY_SECONDS = 1.0
AGAIN_SECONDS = 0.2  # an end is believed when it is seen twice: a command may be between two writes to the lock
NOT_ENDED = ("planned", "running")

Wait = Callable[[float], None]


def watch(watcher: Watcher, stream: TextIO, wait: Wait = time.sleep, clock: Callable[[], float] = time.monotonic) -> int:
    """Show the folder's state until nobody works there any more, and return the exit code of that.

    Raises:
        ResultsError: the folder is gone, or its plan is damaged.
    """
    show: _Live | _Lines = _Live(stream) if is_terminal(stream) else _Lines(stream, clock)
    before: LiveState | None = None
    try:
        while True:
            state = watcher.look()
            show.ended(before, state)
            show.state(state)
            if state.exit_code is not None:
                if before is not None and before.exit_code is not None:
                    break
                wait(AGAIN_SECONDS)
            else:
                wait(LOOK_EVERY_SECONDS)
            before = state
    finally:
        show.close()
    for line in sentences.lines(state):
        stream.write(f"{plain_line(line)}\n")
    stream.flush()
    return state.exit_code


class _Live:
    """The display that `tuneoff compare` has: runs that ended meanwhile scroll above it."""

    def __init__(self, stream: TextIO) -> None:
        self._footer = Footer(stream, has_colour())

    def ended(self, before: LiveState | None, state: LiveState) -> None:
        for text, status in _ends(before, state):
            self._footer.print(text, STYLES[status])

    def state(self, state: LiveState) -> None:
        self._footer.show(screen(state, *self._footer.size()))

    def close(self) -> None:
        self._footer.close()


class _Lines:
    """Plain lines: what ends, and every ten seconds where the current run stands."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream, self._clock = stream, clock
        self._told: float | None = None

    def ended(self, before: LiveState | None, state: LiveState) -> None:
        for text, _ in _ends(before, state):
            self._write(text)

    def state(self, state: LiveState) -> None:
        now = self._clock()
        if state.exit_code is None and (self._told is None or now - self._told >= LINE_EVERY_SECONDS):
            self._told = now
            text = f"; {sentences.current_title(state.current)}: {sentences.current_text(state.current)}" if state.current else ""
            left = f"; {sentences.left(state)}" if sentences.left(state) else ""
            self._write(f"{sentences.headline(state)}{text}{left}")

    def close(self) -> None:
        pass

    def _write(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


def _ends(before: LiveState | None, state: LiveState) -> list[tuple[str, str]]:
    """Return (line, status) of each run that ended between two looks."""
    if before is None:
        return []
    known = {cell.run_id: cell.status for cell in cells_of(before.rows)}
    return [
        (printable(f"{cell.name}: {end_text(cell.status, cell.reason, cell.seconds or 0.0)}"), cell.status)
        for cell in cells_of(state.rows)
        if cell.status not in NOT_ENDED and known.get(cell.run_id) in NOT_ENDED
    ]
