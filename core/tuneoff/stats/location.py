"""Location of one sample."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.stats.interval import Interval


def median(values: Sequence[float], confidence: float, *, grid_step: float = 0.0, key: tuple[str, ...] = ()) -> Interval:
    raise NotImplementedError


def iqm(values: Sequence[float], confidence: float, *, grid_step: float = 0.0, key: tuple[str, ...] = ()) -> Interval:
    raise NotImplementedError


def trimmed_mean(values: Sequence[float], confidence: float, *, trim: float, grid_step: float = 0.0) -> Interval:
    raise NotImplementedError
