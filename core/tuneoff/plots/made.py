"""From a sheet and its table to a drawing."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.plots.canvas import Sheet
from tuneoff.plots.drawing import Drawing
from tuneoff.plots.svg import to_png, to_svg
from tuneoff.plots.words import said

Row = tuple[str | float | int | bool | None, ...]


def made(
    sheet: Sheet,
    name: str,
    *,
    caption: str,
    parts: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[Row],
    notes: Sequence[str] = (),
) -> Drawing:
    """Return the drawing of a sheet; `parts`: what it shows, in words with the figures."""
    question = sheet.question
    alternative = f"{question} {said(parts)}"
    png = to_png(sheet)
    return Drawing(
        name=name,
        question=question,
        caption=caption,
        alternative=alternative,
        svg=to_svg(sheet, name, question, alternative),
        columns=tuple(columns),
        rows=tuple(rows),
        note=" ".join(note for note in notes if note),
        png=png,
    )
