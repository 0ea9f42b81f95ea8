"""One time scale for a run: nanoseconds since its start, on the coordinator's clock."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.event_index import Collected, E, EventOfProcess
from tuneoff.record.events.reader import Alignment
from tuneoff.record.events.schema import Process
from tuneoff.record.run_record import ClockRecord


class Timeline:
    """Turns readings of any process into nanoseconds since the start of the deploy step (else: since the first reading)."""

    def __init__(self, found: Collected) -> None:
        self.alignment = Alignment(found.processes)
        self._offsets = {id(process): self.alignment.offset_ns(process) for process in found.processes}
        deploys = [self._aligned(seen.process, seen.event.t) for seen in found.steps_started if seen.event.step == "deploy"]
        firsts = [self._aligned(process, process.t) for process in found.processes]
        self.start_ns = min(deploys or firsts, default=0)

    def at(self, process: Process, t: int) -> int:
        """Return a process's reading as nanoseconds since the run's start."""
        return self._aligned(process, t) - self.start_ns

    def shift_ns(self, process: Process) -> int:
        """Return what to add to all of a process's readings."""
        return self._offsets[id(process)] - self.start_ns

    def seen_at(self, seen: EventOfProcess[E]) -> int:
        """Return when an event was written."""
        return self.at(seen.process, seen.event.t)

    def first(self, seen: Sequence[EventOfProcess[E]] | None) -> EventOfProcess[E] | None:
        """Return the earliest event, or None where there is none."""
        if not seen:
            return None
        return seen[0] if len(seen) == 1 else min(seen, key=self._order)

    def last(self, seen: Sequence[EventOfProcess[E]] | None) -> EventOfProcess[E] | None:
        """Return the latest event, or None where there is none."""
        return max(seen, key=self._order) if seen else None

    def uncertainty_ns(self, process: Process) -> int:
        """Return the uncertainty of `at` for readings of this process."""
        return self.alignment.uncertainty_ns if self.alignment.is_foreign(process) else 0

    def started_at(self) -> str | None:
        """Return the run's start as wall-clock time (UTC, ISO 8601) of the coordinator's host."""
        reference = self.alignment.reference
        if reference is None:
            return None
        wall = self.start_ns - reference.anchor_monotonic_ns + reference.anchor_wall_ns
        return datetime.datetime.fromtimestamp(wall / NANOSECONDS, datetime.UTC).isoformat(timespec="milliseconds")

    def clock(self) -> ClockRecord | None:
        """Return the run's start on the clocks of the coordinator's host."""
        reference = self.alignment.reference
        if reference is None:
            return None
        return ClockRecord(
            host=reference.host,
            boot_id=reference.boot_id,
            start_monotonic_ns=self.start_ns,
            start_wall_ns=self.start_ns - reference.anchor_monotonic_ns + reference.anchor_wall_ns,
            anchor_width_ns=reference.anchor_width_ns,
        )

    def _aligned(self, process: Process, t: int) -> int:
        return t + self._offsets[id(process)]

    def _order(self, seen: EventOfProcess[E]) -> tuple[int, int, int]:
        return self.seen_at(seen), seen.process.pid, seen.event.seq
