"""Which cells of a scope are compared with which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tuneoff.answers.cells import Cell


def pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return the pairs of a scope that are compared: of first entries, on real platforms, that run."""
    firsts = [cell for cell in cells if cell.is_compared and cell.spec.replicate == 0]
    return [(one, other) for one, other in combinations(firsts, 2) if not is_elsewhere(one, other)]


def noise_pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return (an entry again, its first) of a scope: A/A, whose difference is chance."""
    firsts = {cell.entry: cell for cell in cells if cell.is_compared and cell.spec.replicate == 0}
    again = [cell for cell in cells if cell.is_compared and cell.spec.replicate and cell.entry in firsts]
    return [(cell, firsts[cell.entry]) for cell in again]


def is_elsewhere(one: Cell, other: Cell) -> bool:
    """Whether the runs of both are those of one other scope, where they are compared."""
    return one.same_as is not None and one.same_as == other.same_as
