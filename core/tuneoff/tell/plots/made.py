"""From a sheet and its table to a drawing."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.text import Text

from tuneoff.base.output import printable
from tuneoff.tell.plots.canvas import Sheet
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.svg import to_png, to_svg
from tuneoff.tell.plots.texts import said

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
    runs: Sequence[tuple[str, str]] = (),
) -> Drawing:
    """Return the drawing of a sheet; `parts`: what it shows, in words with the figures; `runs`: (name, run id) of single runs.

    Whatever a name, a parameter or an error text holds, control characters are shown as escapes.
    """
    for text in sheet.figure.findobj(Text):
        text.set_text("\n".join(printable(line) for line in text.get_text().split("\n")))
    question = printable(sheet.question)
    alternative = printable(f"{question} {said(parts)}")
    png = to_png(sheet)
    return Drawing(
        name=name,
        question=question,
        caption=printable(caption),
        alternative=alternative,
        svg=to_svg(sheet, name, question, alternative),
        columns=tuple(columns),
        rows=tuple(tuple(printable(cell) if isinstance(cell, str) else cell for cell in row) for row in rows),
        note=printable(" ".join(note for note in notes if note)),
        png=png,
        runs=tuple((printable(name), run_id) for name, run_id in runs),
    )
