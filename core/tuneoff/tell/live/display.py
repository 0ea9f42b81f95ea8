"""The live display of the matrix that this process runs, from what its listener is told.

The map and the current run stay, runs that ended scroll above.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tuneoff.base.format import wrapped
from tuneoff.base.output import printable
from tuneoff.experiment.plan import Plan
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.tell.live.footer import Footer
from tuneoff.tell.live.overview import Overview
from tuneoff.tell.live.screen import STYLES, screen
from tuneoff.tell.live.state import Activity, Current, Ended, LiveState
from tuneoff.tell.report.progress import end_text

SHOW_EVERY_SECONDS = 0.5


class Board:
    """Takes in what happens. `results`: the records of what ended, in this command and earlier ones, are read from there."""

    def __init__(self, plan: Plan, results: Path) -> None:
        self._overview = Overview(plan, results)
        self._overview.executions.look()
        self._current: Current | None = None

    def begun(self, run_ids: Sequence[str]) -> None:
        """Take in which runs this command runs: some are done already, and are repeated."""
        self._overview.to_run = frozenset(run_ids)

    def started(self, run_id: str, position: int, total: int, label: str) -> None:
        """Take in that a run starts."""
        experiment = self._overview.specs[run_id].experiment
        budget = experiment.budget
        live = LiveRun(run_id=run_id, step="deploy", seconds=0.0, trials=budget.trials, epochs_per_trial=budget.epochs_per_trial)
        self._current = Current(
            run_id=run_id,
            execution_id="",
            name=label,
            position=position,
            total=total,
            metric=experiment.objective.metric,
            live=live,
        )

    def progressed(self, live: LiveRun) -> None:
        """Take in where the current run stands."""
        if self._current is not None:
            self._current = replace(self._current, live=live)

    def ended(self, status: str, reason: str | None, seconds: float) -> None:
        """Take in that the current run ended; its record says more."""
        assert self._current is not None
        self._overview.executions.look()
        self._overview.end(self._current.run_id, Ended(status, reason, seconds))
        self._current = None

    def state(self) -> LiveState:
        """Return the state now."""
        rows = self._overview.rows(self._current.run_id if self._current is not None else None)
        return self._overview.state(rows, Activity.WORKING, self._current, pid=os.getpid())


class LiveProgress(Listener):
    """A listener that draws. It draws a few times per second at most, and only what differs."""

    def __init__(self, footer: Footer, board: Board, clock: Callable[[], float] = time.monotonic) -> None:
        self._footer, self._board, self._clock = footer, board, clock
        self._shown: float | None = None

    def noted(self, text: str) -> None:
        for line in wrapped([printable(text)], self._footer.size()[0]):
            self._footer.print(line, "bad" if text.startswith("! ") else "")

    def begun(self, run_ids: Sequence[str]) -> None:
        self._board.begun(run_ids)

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
