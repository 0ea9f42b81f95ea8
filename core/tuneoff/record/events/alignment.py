"""Put monotonic readings of several processes and hosts on one time scale: that of the coordinator's host."""

from __future__ import annotations

from collections.abc import Iterable

from tuneoff.record.events.schema import Process


class Alignment:
    """Offsets that turn each process's monotonic readings into those of the reference's host, in nanoseconds.

    Readings with the same boot id are comparable directly (offset 0). Other hosts are aligned through their wall-clock
    anchors; `uncertainty_ns` then bounds the error of the pairings. It cannot know by how much the wall clocks of two
    hosts differ: `widen` adds what events that must follow each other prove about that.
    """

    def __init__(self, processes: Iterable[Process]) -> None:
        known = list(processes)
        coordinators = [process for process in known if process.role == "coordinator"]
        self.reference = min(coordinators or known, key=_anchor_wall, default=None)
        self.uncertainty_ns = 0
        for process in known:
            if self.is_foreign(process):
                assert self.reference is not None
                width = (process.anchor_width_ns + self.reference.anchor_width_ns + 1) // 2
                self.uncertainty_ns = max(self.uncertainty_ns, width)

    def is_foreign(self, process: Process) -> bool:
        """Tell whether the process ran under another boot than the reference."""
        return self.reference is not None and _clock_of(process) != _clock_of(self.reference)

    def offset_ns(self, process: Process) -> int:
        """Return what to add to the process's readings."""
        if self.reference is None or not self.is_foreign(process):
            return 0
        return _wall_offset(process) - _wall_offset(self.reference)

    def widen(self, process: Process, violation_ns: int) -> None:
        """Note that an event of `process` seems to precede its cause by `violation_ns`: the alignment errs at least so much."""
        if self.is_foreign(process):
            self.uncertainty_ns = max(self.uncertainty_ns, violation_ns)


def _anchor_wall(process: Process) -> tuple[int, int]:
    return process.anchor_wall_ns, process.pid


def _wall_offset(process: Process) -> int:
    return process.anchor_wall_ns - process.anchor_monotonic_ns


def _clock_of(process: Process) -> str:
    return process.host if process.boot_id == "unknown" else process.boot_id
