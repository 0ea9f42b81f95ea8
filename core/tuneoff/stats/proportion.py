"""Shares of runs."""

from __future__ import annotations

from tuneoff.stats.interval import Interval


def wilson(successes: int, n: int, confidence: float) -> Interval:
    raise NotImplementedError
