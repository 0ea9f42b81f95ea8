"""How often is sampled: as asked, and more rarely where a look is dear and as the file grows."""

from __future__ import annotations

FILE_BYTES = 10_000_000  # of a run's samples: beyond, the interval is the longest
STEPS = 8  # the interval doubles each time that so many parts of it are full
LONGEST_SECONDS = 5.0  # counters wrap, and a gap between samples that is too long is not covered
_FORGETTING = 0.2  # weight of the last look in the mean cost


class Pace:
    """The interval between looks, in seconds."""

    def __init__(self, asked_seconds: float, most_share: float) -> None:
        """`most_share`: of one core's time, that looking may take on the mean."""
        self._asked, self._most_share = asked_seconds, most_share
        self._cost: float | None = None

    def spent(self, cpu_seconds: float) -> None:
        """Count what a look cost."""
        if self._cost is None:
            self._cost = 0.0  # the first look meets everything as new
        else:
            self._cost += _FORGETTING * (cpu_seconds - self._cost)

    def interval(self, written_bytes: int) -> float:
        """Return how long to wait from one look to the next, with a file of so many bytes."""
        by_size = self._asked * 2.0 ** (written_bytes * STEPS // FILE_BYTES)
        by_cost = (self._cost or 0.0) / self._most_share
        return max(self._asked, min(LONGEST_SECONDS, max(by_size, by_cost)))
