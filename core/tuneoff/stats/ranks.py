"""Rank tests across tasks: one value per task and framework, never one per seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tuneoff.controls.statistics import holm
from tuneoff.stats.extended import checked
from tuneoff.stats.rounding import without_rounding
from tuneoff.stats.signed_rank import exact_p

__all__ = ["Friedman", "critical_difference", "friedman", "holm", "wilcoxon"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Friedman:
    """Mean ranks of the columns (1 is lowest, ties share), and whether they differ."""

    mean_ranks: tuple[float, ...]
    chi2: float
    F: float  # of Iman and Davenport, with k − 1 and (k − 1)(n_tasks − 1) degrees of freedom
    p: float  # of F
    n_tasks: int


def wilcoxon(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test of paired values, exact also with ties and zeros (Pratt).

    Two failures of a task are equal, one alone has the greatest rank.

    Raises:
        ValueError: the two differ in length, are empty or hold NaN.
    """
    import numpy as np

    if len(one) != len(other):
        raise ValueError(f"`len(one) == len(other)` must hold, but got {len(one)} and {len(other)}")
    left, right = checked(one, "one"), checked(other, "other")
    sizes = np.abs(np.concatenate([left, right]))
    scale = float(sizes[np.isfinite(sizes)].max(initial=0.0))
    equal = left == right
    differences = np.where(equal, 0.0, np.where(equal, 0.0, left) - np.where(equal, 0.0, right))
    clean, _ = without_rounding(differences, 0.0, scale)
    return exact_p(clean)


def friedman(table: Sequence[Sequence[float]]) -> Friedman:
    """Compare k columns (frameworks) over the rows (tasks) by their ranks in each row; the chi2 is without correction for ties.

    Raises:
        ValueError: there are fewer than 2 rows or 2 columns, the rows differ in length, or a value is NaN.

    Sources: M. Friedman, J. Am. Stat. Assoc. 32 (1937) 675; R. L. Iman and J. M. Davenport, Commun. Statist. A 9 (1980) 571;
    J. Demšar, J. Mach. Learn. Res. 7 (2006) 1.
    """
    import numpy as np

    if len(table) < 2 or len({len(row) for row in table}) != 1 or len(table[0]) < 2:
        raise ValueError(f"a table of at least 2 rows and 2 columns must be given, but got rows of {[len(row) for row in table]}")
    from scipy import stats

    rows = np.array([checked(row, "a row") for row in table])  # (tasks, k)
    tasks, k = rows.shape
    mean_ranks = stats.rankdata(rows, axis=1).mean(axis=0)
    chi2 = 12 * tasks / (k * (k + 1)) * float((mean_ranks**2).sum() - k * (k + 1) ** 2 / 4)
    left = tasks * (k - 1) - chi2
    ratio = (tasks - 1) * chi2 / left if left > 1e-9 * tasks else math.inf
    p = float(stats.f.sf(ratio, k - 1, (k - 1) * (tasks - 1)))
    return Friedman(mean_ranks=tuple(float(rank) for rank in mean_ranks), chi2=chi2, F=ratio, p=p, n_tasks=tasks)


@lru_cache(maxsize=256)
def critical_difference(k: int, n_tasks: int, alpha: float = 0.05) -> float:
    """Return by how much two mean ranks of k must differ over `n_tasks` tasks (Nemenyi).

    Raises:
        ValueError: `k >= 2` and `n_tasks >= 1` do not hold.

    Source: P. B. Nemenyi, thesis, Princeton (1963), as in J. Demšar, J. Mach. Learn. Res. 7 (2006) 1.
    """
    if k < 2 or n_tasks < 1:
        raise ValueError(f"`k >= 2` and `n_tasks >= 1` must hold, but got {k=}, {n_tasks=}")
    from scipy import stats

    quantile = float(stats.studentized_range.ppf(1 - alpha, k, math.inf))
    return quantile / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n_tasks))
