"""Runtimes to a target."""

from __future__ import annotations

from collections.abc import Sequence


def ecdf(runtimes: Sequence[float], n_total: int) -> tuple[tuple[float, float], ...]:
    raise NotImplementedError


def ert(spent: Sequence[float], reached: Sequence[bool]) -> float:
    raise NotImplementedError
