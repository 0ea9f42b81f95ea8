"""What is to be reconciled: every key at most once, some of them later."""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

FIRST_RETRY_SECONDS = 0.005
LAST_RETRY_SECONDS = 1000.0


class WorkQueue(Generic[KeyT]):
    """The lowest rank first, and within a rank first in, first out; for one thread.

    Failures are retried as by controller-runtime: after 5 ms, doubling up to 1000 s.
    """

    def __init__(self, rank: Callable[[KeyT], int] = lambda key: 0) -> None:
        self._rank = rank
        self._ready: dict[int, deque[KeyT]] = {}
        self._waiting: set[KeyT] = set()
        self._later: list[tuple[float, int, KeyT]] = []
        self._counter = 0
        self._failures: Counter[KeyT] = Counter()

    def add(self, key: KeyT) -> None:
        """Put a key at the end of its rank, unless it is there."""
        if key not in self._waiting:
            self._waiting.add(key)
            self._ready.setdefault(self._rank(key), deque()).append(key)

    def add_after(self, key: KeyT, seconds: float) -> None:
        """Put a key at the end after a time."""
        self._counter += 1
        heapq.heappush(self._later, (time.monotonic() + seconds, self._counter, key))

    def retry(self, key: KeyT) -> float:
        """Put a key that failed at the end, later each time; return the delay in seconds."""
        seconds = min(FIRST_RETRY_SECONDS * 2.0 ** min(self._failures[key], 20), LAST_RETRY_SECONDS)
        self._failures[key] += 1
        self.add_after(key, seconds)
        return seconds

    def succeeded(self, key: KeyT) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def take(self) -> KeyT | None:
        """Return the first key that is ready, and remove it; None if there is none."""
        self._promote()
        if not self._waiting:
            return None
        key = self._ready[min(rank for rank, keys in self._ready.items() if keys)].popleft()
        self._waiting.discard(key)
        return key

    def wait_seconds(self) -> float | None:
        """Return how long nothing will be ready: 0 if something is; None if nothing is planned."""
        self._promote()
        if self._waiting:
            return 0.0
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None

    def _promote(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            self.add(heapq.heappop(self._later)[2])
