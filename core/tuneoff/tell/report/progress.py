"""Live progress of a matrix: a display on a terminal, plain lines anywhere else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tuneoff.base.format import duration_text
from tuneoff.run.progress import Listener, LiveRun

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan
    from tuneoff.tell.live.display import Board

LINE_EVERY_SECONDS = 10.0  # plain lines of a run that goes on


@contextlib.contextmanager
def progress(stream: TextIO, plan: Plan, results: Path) -> Iterator[Listener]:
    """Yield what shows progress on `stream`: the whole matrix live where it is a terminal, else line by line."""
    from tuneoff.base.output import has_colour
    from tuneoff.tell.live.display import Board, shown
    from tuneoff.tell.live.footer import Footer, is_terminal

    board = Board(plan, results)
    if not is_terminal(stream):
        yield PlainProgress(stream, board)
        return
    with shown(Footer(stream, has_colour()), board) as live:
        yield live


class PlainProgress(Listener):
    """Lines: a run starts, goes on (every ten seconds), ends; with the time left in all, once the board can tell it."""

    def __init__(self, stream: TextIO, board: Board, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._board, self._clock = stream, board, clock
        self._position, self._total, self._label, self._shown = 0, 0, "", 0.0

    def noted(self, text: str) -> None:
        self._write_line(text)

    def begun(self, run_ids: Sequence[str]) -> None:
        self._board.begun(run_ids)

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        self._position, self._total, self._label, self._shown = position, total, label, self._clock()
        self._board.started(run_id, position, total, label)
        self._write(position, total, label, f"started ({run_id}){self._left()}")

    def run_progress(self, live: LiveRun) -> None:
        now = self._clock()
        if now - self._shown >= LINE_EVERY_SECONDS:
            self._shown = now
            self._board.progressed(live)
            in_all = self._left() if self._position < self._total else ""
            self._write(self._position, self._total, self._label, f"{trials_text(live)}{in_all}")

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        if seconds:
            self._board.ended(status, reason, seconds)
            self._write(position, total, label, end_text(status, reason, seconds))

    def _left(self) -> str:
        from tuneoff.tell.live.sentences import left

        return f"; {text}" if (text := left(self._board.state())) else ""

    def _write(self, position: int, total: int, label: str, text: str) -> None:
        self._write_line(f"[{position}/{total}] {label}: {text}")

    def _write_line(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a reader that went away must not end the matrix
            self._stream.write(f"{text}\n")
            self._stream.flush()


def trials_text(live: LiveRun) -> str:
    """Return where a run stands: trials, incumbent, rate, time left."""
    parts = [f"{live.ended}/{live.trials} trials"]
    kinds = {"running": live.running, "pruned": live.pruned, "failed": live.failed, "cancelled": live.cancelled}
    parts += [f"{count} {name}" for name, count in kinds.items() if count]
    if live.incumbent is not None:
        parts.append(f"best {live.incumbent:.5g}")
    if rate := rate_text(live):
        parts.append(rate)
    if live.step not in ("", "trial"):
        parts.append(f"step {live.step}")
    elif live.seconds_left is not None:
        parts.append(f"{duration_text(live.seconds_left)} left")
    return ", ".join(parts)


def rate_text(live: LiveRun) -> str:
    """Return how fast trials end; nothing before the first."""
    if not live.ended or live.seconds <= 0:
        return ""
    rate = live.ended / live.seconds
    return f"{rate:.1f} trials/s" if rate >= 1 else f"{60 * rate:.1f} trials/min"


def end_text(status: str, reason: str | None, seconds: float) -> str:
    """Return how a run ended, in one line."""
    took = f" in {duration_text(seconds)}" if seconds else ""
    why = f": {' '.join(reason.split())}" if reason and reason != status else ""
    return f"{status}{took}{why}"
