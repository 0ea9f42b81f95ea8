"""How often is a target value reached, and how soon?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from tuneoff.base.format import counted
from tuneoff.judge.answers.anytime import Clock
from tuneoff.judge.answers.runtimes import Runtimes
from tuneoff.tell.plots.canvas import end_marker, line_key, plain_numbers
from tuneoff.tell.plots.clocks import CLOCKS, panels, sheet_of, time_axis
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.steps import at
from tuneoff.tell.plots.texts import value_text
from tuneoff.tell.plots.theme import Style
from tuneoff.tell.plots.view import View


def draw(view: View) -> Drawing | None:
    """Draw the share of reached targets of each adapter on both clocks, a row of panels per scope."""
    scopes, note = view.scopes()
    found = {scope: view.runtimes(scope) for scope in scopes}
    shown = [scope for scope in scopes if any(any(one.ecdf.values()) for one in found[scope])]
    if not shown:
        return None
    labels = list(dict.fromkeys(one.label for scope in shown for one in found[scope]))
    sheet = sheet_of(
        "How often is a target value reached, and how soon?", shown, [line_key(view.style(label)) for label in labels]
    )
    rows: list[Row] = []
    for scope, clock, axes, is_first in panels(sheet, shown):
        mine = [one for one in found[scope] if any(reached.clock == clock for reached in one.reached)]
        if not any(one.ecdf[clock] for one in mine):
            axes.remove()
            continue
        rows += _panel(view, axes, mine, clock)
        if is_first:
            axes.set_ylabel("share reached")
    sources = dict.fromkeys(one.note for scope in shown for one in found[scope] if one.note)
    return made(
        sheet,
        "ecdf",
        caption=(
            "Of all pairs of a run and a validation target, the same targets for all adapters of a scope: the share that was "
            "reached by then. A run that failed reaches none and is counted, so with a failure the share stays below 1."
        ),
        parts=[
            _said(view, one, clock, single=len(shown) == 1)
            for scope in shown
            for one in found[scope]
            for clock in CLOCKS
            if any(reached.clock == clock for reached in one.reached)
        ],
        columns=("scope", "adapter", "clock", "x", "share"),
        rows=rows,
        notes=(note, *(f"Targets: {source}." for source in sources)),
    )


def _panel(view: View, axes: Axes, found: Sequence[Runtimes], clock: Clock) -> list[Row]:
    starts = [one.ecdf[clock][0][0] for one in found if one.ecdf[clock]]
    ends = [_end(one, clock) for one in found]
    time_axis(axes, clock, starts, ends)
    axes.set_ylim(-0.03, 1.03)
    plain_numbers(axes, "y", most=4)
    rows: list[Row] = []
    for one, end in zip(found, ends, strict=True):
        style = view.style(one.label)
        _line(axes, one.ecdf[clock], style, end)
        rows += [(one.scope.text, view.label(one.label), clock, x, share) for x, share in one.ecdf[clock]]
    return rows


def _line(axes: Axes, steps: Sequence[tuple[float, float]], style: Style, end: float) -> None:
    xs, ys = [0.0, *(x for x, _ in steps)], [0.0, *(share for _, share in steps)]
    axes.step([*xs, end], [*ys, ys[-1]], where="post", color=style.colour, linestyle=style.line, lw=1.5)
    end_marker(axes, style, end, ys[-1])


def _end(one: Runtimes, clock: Clock) -> float:
    """Return where a group's last run gave up, or reached its last target."""
    return max((spent for reached in one.reached if reached.clock == clock for spent in reached.spent), default=0.0) or 1.0


def _said(view: View, one: Runtimes, clock: Clock, *, single: bool) -> str:
    name = view.style(one.label).label + ("" if single else f" in {one.scope.text}")
    mine = [reached for reached in one.reached if reached.clock == clock]
    steps, hardest = one.ecdf[clock], mine[-1]
    unit = "trials" if clock == "trials" else "s"
    last = at(steps, math.inf, 0.0)
    expected = "never" if math.isinf(hardest.ert) else value_text(hardest.ert, unit)
    return (
        f"{name}: {100 * last:.0f} % of {counted(len(mine), 'target')} in {counted(hardest.runs, 'run')} after "
        f"{value_text(_end(one, clock), unit)}; the hardest, {hardest.target.text}, by {hardest.successes} of them, expected "
        f"runtime {expected}"
    )
