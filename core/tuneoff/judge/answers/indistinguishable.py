"""Which adapters of a scope are not told apart by any verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def not_apart(labels: Sequence[str], apart: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the largest sets of at least two labels of which no pair is in `apart`, in the order of the labels.

    A label may be in several: A is like B, B like C, and A and C differ.
    """
    different = {frozenset(pair) for pair in apart}
    alike = {
        label: {other for other in labels if other != label and frozenset((label, other)) not in different} for label in labels
    }
    found: list[tuple[str, ...]] = []

    def grow(members: list[str], candidates: list[str], excluded: set[str]) -> None:
        if not candidates and not excluded:
            if len(members) > 1:
                found.append(tuple(members))
            return
        for label in list(candidates):
            grow([*members, label], [one for one in candidates if one in alike[label]], excluded & alike[label])
            candidates.remove(label)
            excluded.add(label)

    grow([], list(labels), set())
    return found
