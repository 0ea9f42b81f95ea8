"""Panels on two clocks, trials and seconds: a row per scope, two scopes in a row where there are many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from tuneoff.judge.answers.anytime import Clock
from tuneoff.judge.runs import Scope
from tuneoff.tell.plots.canvas import SMALL, Sheet, letters, log_scale, plain_numbers, whole_numbers
from tuneoff.tell.plots.texts import lines
from tuneoff.tell.plots.view import FEW_SCOPES

CLOCKS: tuple[Clock, ...] = ("trials", "seconds")
FAR = 30.0  # ends that differ by more than this factor need a logarithmic axis


def sheet_of(question: str, scopes: Sequence[Scope], legend: Sequence[Artist]) -> Sheet:
    """Return a sheet with room for both clocks of these scopes."""
    small = len(scopes) > FEW_SCOPES
    per_row = _per_row(scopes)
    return Sheet(
        question,
        [1.25 if small else 2.2] * math.ceil(len(scopes) / per_row),
        columns=2 * per_row,
        gap=0.5,
        legend=legend,
        above=0.36 if small else 0.3,
    )


def panels(sheet: Sheet, scopes: Sequence[Scope]) -> Iterator[tuple[Scope, Clock, Axes, bool]]:
    """Yield (scope, clock, axes, whether they are the first of a row)."""
    per_row = _per_row(scopes)
    for place, scope in enumerate(scopes):
        row, column = place // per_row, 2 * (place % per_row)
        title = lines(scope.text, letters(2 * sheet.panel_width + 0.5, SMALL), 1)
        for offset, clock in enumerate(CLOCKS):
            yield scope, clock, sheet.panel(row, column + offset, title="" if offset else title), column + offset == 0


def time_axis(axes: Axes, clock: Clock, starts: Sequence[float], ends: Sequence[float]) -> None:
    """Set the x axis; `starts` and `ends` are of the curves that are drawn."""
    if clock == "seconds" and min(starts) > 0 and max(ends) / min(ends) > FAR:
        low = min(starts)
        log_scale(axes, "x", low, max(ends))
        axes.set_xlim(low / 1.1, max(ends) * 1.1)
    else:
        (whole_numbers if clock == "trials" else plain_numbers)(axes, "x", most=4)
        axes.set_xlim(0, 1.03 * (max(ends) or 1))
    wide = axes.get_position().width > 0.3
    text = "seconds since the first trial was submitted" if wide else "seconds"
    axes.set_xlabel("trials" if clock == "trials" else text, size=SMALL)


def _per_row(scopes: Sequence[Scope]) -> int:
    return 2 if len(scopes) > FEW_SCOPES else 1
