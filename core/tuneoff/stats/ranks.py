"""Rank tests across tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuneoff.controls.statistics import holm

__all__ = ["Friedman", "critical_difference", "friedman", "holm", "wilcoxon"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Friedman:
    """Mean ranks (1 is lowest, so best where lower is better) of the columns, and whether they differ."""

    mean_ranks: tuple[float, ...]
    chi2: float
    F: float  # Iman and Davenport
    p: float  # of F
    n_tasks: int


def wilcoxon(one: Sequence[float], other: Sequence[float]) -> float:
    raise NotImplementedError


def friedman(table: Sequence[Sequence[float]]) -> Friedman:
    raise NotImplementedError


def critical_difference(k: int, n_tasks: int, alpha: float = 0.05) -> float:
    raise NotImplementedError
