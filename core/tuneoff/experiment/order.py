"""The order of runs: who comes when, so that drift of the machine and what a run leaves behind meet everyone alike."""

from __future__ import annotations


def williams_rows(size: int) -> list[list[int]]:
    """Return the rows of a Williams square: each of `size` items stands once in each place, and follows each other equally often.

    An odd `size` needs twice as many rows for the second property. Source: E. J. Williams, Aust. J. Sci. Res. A 2 (1949) 149.
    """
    first = [(place + 1) // 2 if place % 2 else (size - place // 2) % size for place in range(size)]
    rows = [[(item + shift) % size for item in first] for shift in range(size)]
    return rows if size % 2 == 0 else rows + [row[::-1] for row in rows]


def rotated(size: int, shift: int) -> list[int]:
    """Return 0 .. size-1, begun at `shift`."""
    return [(place + shift) % size for place in range(size)]
