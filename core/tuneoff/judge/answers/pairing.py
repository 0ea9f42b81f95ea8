"""Which cells of a scope are compared with which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tuneoff.judge.runs import Group


def pairs(cells: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Return the pairs of a scope that are compared: of first entries, on real platforms, that run."""
    firsts = [cell for cell in cells if cell.is_compared and cell.spec.replicate == 0]
    return [(one, other) for one, other in combinations(firsts, 2) if not is_elsewhere(one, other)]


def is_elsewhere(one: Group, other: Group) -> bool:
    """Whether the runs of both are those of one other scope, where they are compared."""
    return bool(one.twins) and one.same_as == other.same_as
