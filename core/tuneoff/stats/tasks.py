"""Across tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuneoff.stats.interval import Interval


def stratified_iqm(scores: Mapping[str, Sequence[float]], confidence: float, *, key: tuple[str, ...]) -> Interval:
    raise NotImplementedError


def probability_of_improvement(
    one: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]], confidence: float, *, key: tuple[str, ...]
) -> Interval:
    raise NotImplementedError


def performance_profile(scores: Mapping[str, Sequence[float]], taus: Sequence[float]) -> tuple[float, ...]:
    raise NotImplementedError
