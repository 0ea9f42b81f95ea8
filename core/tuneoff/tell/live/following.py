"""Follow one execution by its event files: each look reads only what was appended since the last one."""

from __future__ import annotations

import time
from pathlib import Path

from tuneoff.base import clock
from tuneoff.errors import ResultsError
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.events.schema import Process
from tuneoff.record.events.tail import Tail
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import read_history
from tuneoff.run.listener import LiveRun
from tuneoff.run.supervisor.tracker import Tracker


class Following:
    """A run that is under way. A line that is not yet whole is read when it is."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        self.folder = folder
        self._tail = Tail(folder / EVENTS)
        self._tracker = Tracker(experiment=spec.experiment, run_id=folder.parent.name)
        self._coordinator: Process | None = None  # whose clock the steps are on
        self._problems: list[str] = []
        try:
            self._tracker.begin_with(read_history(folder))
        except ResultsError as error:
            self._problems.append(str(error))

    @property
    def host(self) -> str | None:
        """The host on which it runs; None: it has written nothing yet."""
        return self._coordinator.host if self._coordinator is not None else None

    @property
    def problems(self) -> list[str]:
        """What could not be read."""
        return [*self._problems, *self._tail.problems]

    def look(self) -> LiveRun:
        """Return where the run stands now."""
        for process, event in self._tail.poll():
            if self._coordinator is None or (process.role == "coordinator" and self._coordinator.role != "coordinator"):
                self._coordinator = process
            self._tracker.take(process, event)
        return self._tracker.live(self._now_ns())

    def _now_ns(self) -> int:
        """Return the moment on the monotonic clock of the run's host: by its anchor, where that is not this boot of this host."""
        there = self._coordinator
        if there is None or there.boot_id == clock.boot_id():
            return clock.monotonic_ns()
        return there.anchor_monotonic_ns + (time.time_ns() - there.anchor_wall_ns)
