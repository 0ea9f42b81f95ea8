"""Which adapter does better with the same seed, and by how much?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tuneoff.base.format import counted
from tuneoff.judge.answers.answer import Question, Verdict
from tuneoff.judge.runs import Scope
from tuneoff.tell.plots.canvas import EDGE, SMALL, Sheet, letters, names_room, patch_key
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.steps import spread_out
from tuneoff.tell.plots.texts import lines, value_text
from tuneoff.tell.plots.theme import GRID, INK, MUTED, SERIES
from tuneoff.tell.plots.view import View

ROW = 0.23
MOST_ROWS = 60
WIDE = 1.9  # inches of names that leave room for one column
TIMES = (  # ticks of ratios on either side of 1, from narrow to wide
    (1.001, 1.002),
    (1.005, 1.01),
    (1.01, 1.02),
    (1.02, 1.05),
    (1.05, 1.1),
    (1.1, 1.2),
    (1.2, 1.5),
    (1.5, 2),
    (2, 4),
    (3, 10),
    (10, 100),
    (100, 10_000),
)
MOST_POINTS = 60  # of a pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The pairs of a scope on one question."""

    scope: Scope
    question: Question
    verdicts: tuple[Verdict, ...]


def draw(view: View) -> Drawing | None:
    """Draw the differences of all pairs: a panel per scope and question."""
    panels, note = _panels(view)
    if not panels:
        return None
    names = [_pair(view, verdict) for panel in panels for verdict in panel.verdicts]
    keys: list[Patch | Line2D] = [
        Line2D([], [], color=SERIES[0], marker="o", linestyle="none", markersize=4, label="one seed"),
        Line2D([], [], color=INK, marker="D", markersize=5, linewidth=1.6, label="estimate with interval"),
        patch_key("no difference that matters (margin)", GRID),
    ]
    if any(item.difference in (-math.inf, math.inf) for p in panels for v in p.verdicts for item in v.differences):
        keys.append(Line2D([], [], color=SERIES[6], marker=">", linestyle="none", label="one of the two failed"))
    room = names_room(names) + 0.05
    columns = 2 if room < WIDE and len(panels) > 1 else 1
    together = [panels[place : place + columns] for place in range(0, len(panels), columns)]
    sheet = Sheet(
        "Which adapter does better with the same seed, and by how much?",
        [ROW * max(len(panel.verdicts) for panel in one) + 0.1 for one in together],
        columns=columns,
        left=room,
        gap=room + 0.15,
        right=0.2,
        legend=keys,
        below=0.48,
    )
    rows: list[Row] = []
    several = len({panel.scope for panel in panels}) > 1
    for place, panel in enumerate(panels):
        title = f"{panel.question.name} ({panel.question.metric})" + (f", {panel.scope.text}" if several else "")
        outdent = room - EDGE
        text = lines(title, letters(sheet.panel_width + outdent, SMALL), 1)
        axes = sheet.panel(place // columns, place % columns, title=text, outdent=outdent)
        rows += _draw(view, axes, panel)
    confidence = next((v.interval.confidence for p in panels for v in p.verdicts if v.interval is not None), None)
    interval = f" The interval is of {100 * confidence:.4g} % confidence." if confidence is not None else ""
    return made(
        sheet,
        "paired",
        caption=(
            "A dot is the difference of two runs with the same seed, the first adapter minus the second; for times, energy and "
            f"cost it is a ratio.{interval} A pair of equal entries shows the noise floor."
        ),
        parts=[_said(view, verdict) for panel in panels for verdict in panel.verdicts],
        columns=("scope", "question", "one", "other", "seed", "difference", "ratio", "low", "high"),
        rows=rows,
        notes=(
            note,
            f"Of a pair with more than {MOST_POINTS} seeds as many are drawn, the least and the greatest among them."
            if any(sum(item.difference is not None for item in v.differences) > MOST_POINTS for p in panels for v in p.verdicts)
            else "",
        ),
    )


def _panels(view: View) -> tuple[list[Panel], str]:
    scopes, note = view.scopes()
    found: list[Panel] = []
    left_out = 0
    taken = 0
    for scope in scopes:
        for question in view.answers.questions:
            mine = tuple(
                verdict
                for verdict in view.answers.verdicts
                if verdict.scope == scope
                and verdict.question.name == question.name
                and any(item.difference is not None for item in verdict.differences)
            )
            if mine and taken + len(mine) > MOST_ROWS and found:
                left_out += len(mine)
            elif mine:
                taken += len(mine)
                found.append(Panel(scope=scope, question=question, verdicts=tuple(sorted(mine, key=lambda v: v.is_noise))))
    more = f"{counted(left_out, 'pair')} of further scopes and questions are not drawn." if left_out else ""
    return found, " ".join(text for text in (note, more) if text)


def _draw(view: View, axes: Axes, panel: Panel) -> list[Row]:
    rows: list[Row] = []
    question = panel.question
    finite = [
        item.difference
        for verdict in panel.verdicts
        for item in verdict.differences
        if item.difference is not None and math.isfinite(item.difference)
    ]
    bounds = [
        bound
        for verdict in panel.verdicts
        if verdict.interval is not None
        for bound in (verdict.interval.low, verdict.interval.estimate, verdict.interval.high)
        if math.isfinite(bound)
    ]
    reach = max((abs(value) for value in (*finite, *bounds, *([question.margin] if question.margin else []))), default=1.0)
    reach = (reach or 1.0) * 1.12
    if question.margin is not None:
        axes.axvspan(-question.margin, question.margin, color=GRID, linewidth=0, zorder=0)
    axes.axvline(0, color=MUTED, linewidth=0.9, zorder=1)
    for place, verdict in enumerate(panel.verdicts):
        rows += _pair_row(view, axes, verdict, place, reach)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(len(panel.verdicts) - 0.4, -0.6)
    axes.set_yticks(range(len(panel.verdicts)), [_pair(view, verdict) for verdict in panel.verdicts], size=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    if question.scale == "ratio":
        steps = next((pair for pair in reversed(TIMES) if math.log(pair[1]) <= reach), TIMES[0])
        places = [-math.log(step) for step in reversed(steps)] + [0.0] + [math.log(step) for step in steps]
        texts = [f"÷{step:g}" for step in reversed(steps)] + ["1"] + [f"×{step:g}" for step in steps]
        axes.set_xticks(places, texts)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+g}".replace("-", "\u2212") if value else "0"))
    one, other = ("first is better", "second is better")
    left, right = (one, other) if question.better == "min" else (other, one)
    axes.set_xlabel(f"← {left}   |   {right} →", size=SMALL)
    return rows


def _pair_row(view: View, axes: Axes, verdict: Verdict, place: int, reach: float) -> list[Row]:
    colour = MUTED if verdict.is_noise else SERIES[0]
    head = (verdict.scope.text, verdict.question.name, view.label(verdict.one), view.label(verdict.other))
    known = sorted((item.difference, item.seed) for item in verdict.differences if item.difference is not None)
    known = [known[index] for index in spread_out(len(known), MOST_POINTS)]
    finite = [(value, seed) for value, seed in known if math.isfinite(value)]
    axes.plot(
        [value for value, _ in finite], [place + 0.18] * len(finite), "o", color=colour, markersize=3.6, alpha=0.75, zorder=3
    )
    for value, _ in known:
        if math.isinf(value):
            side = math.copysign(1, value)
            axes.plot([side * reach * 0.985], [place], marker=">" if side > 0 else "<", color=SERIES[6], zorder=4, clip_on=False)
    rows: list[Row] = [(*head, seed, value, _ratio(verdict.question, value), None, None) for value, seed in known]
    interval = verdict.interval
    if interval is not None:
        low, high = (max(-reach, min(reach, bound)) for bound in (interval.low, interval.high))
        axes.plot([low, high], [place - 0.16] * 2, color=INK, linewidth=1.6, zorder=3)
        for bound, side in ((interval.low, -1), (interval.high, 1)):
            if abs(bound) > reach:  # it goes on
                axes.plot([side * reach], [place - 0.16], ">" if side > 0 else "<", color=INK, markersize=4, clip_on=False)
        if math.isfinite(interval.estimate):
            axes.plot([interval.estimate], [place - 0.16], "D", color=INK, markersize=4.5, zorder=4)
        rows.append((*head, None, interval.estimate, _ratio(verdict.question, interval.estimate), interval.low, interval.high))
    return rows


def _ratio(question: Question, value: float) -> float | None:
    return math.exp(value) if question.scale == "ratio" and value < 700 else None


def _pair(view: View, verdict: Verdict) -> str:
    sign = "÷" if verdict.question.scale == "ratio" else "−"  # a minus sign
    return f"{view.style(verdict.one).label} {sign} {view.style(verdict.other).label}"


def _said(view: View, verdict: Verdict) -> str:
    known = [item.difference for item in verdict.differences if item.difference is not None]
    interval = verdict.interval
    if interval is None:
        text = f"{counted(len(known), 'pair')}, no interval"
    else:
        low, estimate, high = (_size(verdict.question, value) for value in (interval.low, interval.estimate, interval.high))
        text = f"{estimate}, from {low} to {high}, {counted(len(known), 'pair')}"
    failures = sum(math.isinf(value) for value in known)
    lost = f", in {failures} of them one of the two failed" if failures else ""
    return f"{verdict.question.name}, {verdict.scope.text}: {_pair(view, verdict)} {text}{lost}: {verdict.outcome.value}"


def _size(question: Question, value: float) -> str:
    if math.isinf(value):
        return "no bound"
    return f"{math.exp(value):.3g} times" if question.scale == "ratio" else value_text(value)
