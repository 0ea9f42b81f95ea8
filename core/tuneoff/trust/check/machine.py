"""What the machine did during a run: why a limit of time may be missed by an adapter that keeps it."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

from tuneoff.base import clock
from tuneoff.measure.power.procfs import HostClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The load average of the minute before a run's end, and the share of all processors' time that was used by others, in %."""

    load_1min: float
    others_percent: float

    @property
    def text(self) -> str:
        return f"other programs used {self.others_percent:.0f} % of the processors, at a load of {self.load_1min:.1f}"


class MachineWatch:
    """Looks from where it is made; what is this process's, and its children's that have ended by then, is the run's own."""

    def __init__(self) -> None:
        self._host = HostClock()
        self._before = clock.monotonic_ns(), self._others_ns()

    def seen(self) -> Machine:
        """Return what was done since this was made."""
        elapsed_ns, others_ns = (
            now - before for now, before in zip((clock.monotonic_ns(), self._others_ns()), self._before, strict=True)
        )
        share = others_ns / (elapsed_ns * (os.cpu_count() or 1))
        return Machine(load_1min=os.getloadavg()[0], others_percent=100 * min(max(share, 0.0), 1.0))

    def _others_ns(self) -> int:
        """Return the CPU time of all processors but of this process and its children that have ended."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return self._host.read().busy_ns - int(sum(one.ru_utime + one.ru_stime for one in used) * clock.NANOSECONDS)
