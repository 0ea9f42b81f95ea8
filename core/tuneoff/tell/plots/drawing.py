"""A plot with what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One plot. `svg` is for a page: its colours are CSS variables. `alternative` says in words what the plot shows.

    `columns` and `rows` are all that is drawn, as a table; `note` says what was left out or thinned, "" for nothing.
    `png` is the same in light colours, with its title.
    """

    name: str  # of its files: "anytime"
    question: str  # the title
    caption: str
    alternative: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | bool | None, ...], ...]
    note: str = ""
    png: bytes = b""
    runs: tuple[tuple[str, str], ...] = ()  # (name, run id) of the runs that it shows one by one
