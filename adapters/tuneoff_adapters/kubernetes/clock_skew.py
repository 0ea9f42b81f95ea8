"""When things happened, on this process's clock: what pods say by theirs, and what the API server dates to the second."""

from __future__ import annotations

import datetime
from pathlib import Path

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.events.reader import Alignment, read_header
from tuneoff.record.events.schema import Process
from tuneoff_adapters.kubernetes.resources import Object

_GRAIN_NS = NANOSECONDS  # of its dates


class PodClock:
    """Turns pods' readings into this process's, as the records do: as they are under one kernel, else by wall-clock anchors."""

    def __init__(self, events: Path) -> None:
        """`events`: this process's own event file."""
        with events.open("rb") as file:
            self._here = read_header(file.readline(), str(events))

    def here(self, process: Process, t: int) -> int:
        return t + Alignment([self._here, process]).offset_ns(process)

    def at_wall(self, wall_ns: int) -> int:
        """Return a wall-clock time of this host on this process's clock."""
        return wall_ns - self._here.anchor_wall_ns + self._here.anchor_monotonic_ns

    def at_date(self, text: object) -> int | None:
        """Return where a date's whole second begins on this process's clock; None for what is not a date."""
        try:
            moment = datetime.datetime.fromisoformat(str(text))
        except ValueError:
            return None
        return self.at_wall(int(moment.timestamp()) * NANOSECONDS)

    def is_late(self, date: str, seen_ns: int) -> bool:
        """Tell whether news came later than the whole second of its date explains, as it does after an outage."""
        begin_ns = self.at_date(date)
        return begin_ns is not None and seen_ns > begin_ns + _GRAIN_NS


class Creations:
    """When objects were made. The API server says so in whole seconds of its own clock, which may differ from this host's.

    By how much it differs at most, the object that was seen soonest after its making tells; at least, the one that was made
    soonest after `since_ns`, before which there was none.
    """

    def __init__(self, clock: PodClock, since_ns: int) -> None:
        self._clock, self._since_ns = clock, since_ns
        self._lag_ns: int | None = None  # the difference of the clocks, or more
        self._least_lag_ns = 0  # the same, or less

    def note(self, obj: Object, seen_ns: int) -> None:
        """Take note that an object was first seen at a moment."""
        created_ns = self._created(obj)
        if created_ns is not None:
            most_ns, least_ns = seen_ns - created_ns, self._since_ns - created_ns - _GRAIN_NS
            is_first = self._lag_ns is None
            self._lag_ns = most_ns if self._lag_ns is None else min(self._lag_ns, most_ns)
            self._least_lag_ns = least_ns if is_first else max(self._least_lag_ns, least_ns)

    def bounds(self, obj: Object) -> tuple[int, int] | None:
        """Return the earliest and the latest moment at which an object was made, or None where nothing tells."""
        created_ns = self._created(obj)
        if created_ns is None or self._lag_ns is None:
            return None
        return created_ns + self._least_lag_ns, created_ns + self._lag_ns + _GRAIN_NS

    def submitted(self, obj: Object, seen_ns: int, started_ns: int | None = None) -> int:
        """Return when a Trial was submitted: when it was seen, unless it was made or started before.

        A start that lies before the Trial was made shows that a node's clock is wrong, and moves nothing further than that.
        """
        bounds = self.bounds(obj)
        latest_ns = seen_ns if bounds is None else min(seen_ns, bounds[1])
        if started_ns is None or started_ns >= latest_ns:
            return latest_ns
        return started_ns if bounds is None else max(started_ns, min(bounds[0], latest_ns))

    def _created(self, obj: Object) -> int | None:
        return self._clock.at_date(obj.get("metadata", {}).get("creationTimestamp"))
