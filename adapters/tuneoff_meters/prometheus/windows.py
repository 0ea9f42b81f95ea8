"""In which steps and windows a server is asked for a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

POINTS_PER_QUERY = 10_000  # the server refuses more than 11 000
FINEST_INTERVAL = 2.0  # between scrapes that the first look, in steps of 1 s, can tell from each other


def step_of(seconds: float, interval: float | None) -> float:
    """Return a step that sees every scrape; `interval`: of the scrapes, as the first look has shown it."""
    if interval is not None and interval > FINEST_INTERVAL:
        return min(30.0, interval / 2)
    return min(1.0, max(0.1, seconds / 2000))


def windows(start: float, end: float, step: float) -> Iterator[tuple[float, float]]:
    """Yield windows that together have a step at `end` and every `step` before it, down to `start`; as many as one query may."""
    steps = max(1, math.ceil((end - start) / step))
    for first in range(0, steps + 1, POINTS_PER_QUERY):
        last = min(first + POINTS_PER_QUERY - 1, steps)
        yield end - (steps - first) * step, end - (steps - last) * step
