"""Stacked bars of medians, with a point per run below each bar: time by phases, overhead by stages."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tuneoff.tell.plots.canvas import SMALL, Sheet, letters, names_room, patch_key, plain_numbers, rectangles
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.steps import spread_out
from tuneoff.tell.plots.texts import lines, value_text
from tuneoff.tell.plots.theme import HATCH, INK, MUTED, PAPER, SERIES
from tuneoff.tell.plots.view import View, missing_note

BAR = 0.36  # inches per bar with its points
MOST_POINTS = 200  # of a bar
HATCHES = (None, "\\\\\\", None, "///", None, "|||")
FAR = 8.0  # scopes whose bars differ by more than this factor have scales of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One adapter in one scope: medians by part, and the total of each run."""

    scope: str
    label: str
    parts: tuple[tuple[str, float], ...]
    totals: tuple[tuple[int, float], ...]  # (seed, value)
    emulated: bool

    @property
    def length(self) -> float:
        return sum(value for _, value in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What is stacked: metrics by the name that they are shown by, the total, and the factor to the unit of the axis."""

    name: str
    question: str
    caption: str
    parts: dict[str, str]
    total: str
    unit: str
    factor: float


def draw_stack(view: View, stack: Stack) -> Drawing | None:
    """Draw a panel per scope with a bar per adapter; None where no run has the parts."""
    scopes, note = view.scopes()
    bars: list[Bar] = []
    without = 0
    for scope in scopes:
        for group in view.groups(scope):
            bar, missing = _bar(
                view, stack, group.label, scope.text, [run for run in view.runs(group) if run.is_done], group.emulated
            )
            without += missing
            bars += [bar] if bar is not None else []
    if not bars:
        return None
    texts = list(dict.fromkeys(bar.scope for bar in bars))
    names = list(dict.fromkeys(view.style(bar.label).label for bar in bars))
    used = [part for part in stack.parts if any(value > 0 for bar in bars for name, value in bar.parts if name == part)]
    looks = {part: (SERIES[place % len(SERIES)], HATCHES[place % len(HATCHES)]) for place, part in enumerate(used)}
    keys: list[Patch | Line2D] = [patch_key(part, *looks[part]) for part in used]
    keys.append(Line2D([], [], color=INK, marker="|", linestyle="none", markersize=7, label="one run"))
    by_scope = {text: [bar for bar in bars if bar.scope == text] for text in texts}
    longest = {text: max(_longest(bar) for bar in mine) or 1.0 for text, mine in by_scope.items()}
    is_shared = max(longest.values()) <= FAR * min(longest.values())
    sheet = Sheet(
        stack.question,
        [BAR * len(mine) + 0.1 for mine in by_scope.values()],
        left=names_room(names) + 0.1,
        right=0.75,
        legend=keys,
        below=0.08 if is_shared else 0.45,
        foot=0.37 if is_shared else 0.0,
    )
    rows: list[Row] = []
    for place, (text, mine) in enumerate(by_scope.items()):
        axes = sheet.panel(place, title=lines(text, letters(sheet.panel_width), 1) if len(texts) > 1 or text else "")
        _panel(view, axes, mine, looks, stack.unit, max(longest.values()) if is_shared else longest[text])
        has_scale = not is_shared or place == len(by_scope) - 1
        axes.tick_params(axis="x", labelbottom=has_scale)
        if has_scale:
            axes.set_xlabel("seconds" if stack.unit == "s" else f"{stack.unit} per trial", size=SMALL)
        for bar in mine:
            head = (text, view.label(bar.label))
            rows += [(*head, part, None, value) for part, value in bar.parts]
            rows += [(*head, "one run", seed, value) for seed, value in _points(bar)]
    thinned = any(len(bar.totals) > MOST_POINTS for bar in bars)
    return made(
        sheet,
        stack.name,
        caption=stack.caption,
        parts=[_said(view, bar, stack.unit, single=len(texts) == 1) for bar in bars],
        columns=("scope", "adapter", "part", "seed", f"value_{stack.unit}"),
        rows=rows,
        notes=(
            note,
            "" if is_shared else "The scopes have scales of their own.",
            missing_note(without, "continued after an interruption, or too short to have one"),
            f"Of a group with more than {MOST_POINTS} runs as many are shown, the least and the greatest among them."
            if thinned
            else "",
        ),
    )


def _bar(view: View, stack: Stack, label: str, scope: str, runs: Sequence, emulated: bool) -> tuple[Bar | None, int]:  # type: ignore[type-arg]
    totals = [(run.ref.seed, value * stack.factor) for run in runs if (value := run.value(stack.total)) is not None]
    parts = []
    for part, metric in stack.parts.items():
        values = [value for run in runs if (value := run.value(metric)) is not None]
        if values:
            parts.append((part, statistics.median(values) * stack.factor))
    if not totals or not parts:
        return None, len(runs)
    bar = Bar(scope=scope, label=label, parts=tuple(parts), totals=tuple(totals), emulated=emulated)
    return bar, len(runs) - len(totals)


def _longest(bar: Bar) -> float:
    return max(bar.length, *(value for _, value in bar.totals), 0.0)


def _points(bar: Bar) -> list[tuple[int, float]]:
    ordered = sorted(bar.totals, key=lambda item: item[1])
    return [ordered[place] for place in spread_out(len(ordered), MOST_POINTS)]


def _panel(
    view: View, axes: Axes, bars: Sequence[Bar], looks: dict[str, tuple[str, str | None]], unit: str, longest: float
) -> None:
    boxes: dict[str, list[tuple[float, float, float, float]]] = {part: [] for part in looks}
    grey: list[tuple[float, float, float, float]] = []
    for place, bar in enumerate(bars):
        at = 0.0
        for part, value in bar.parts:
            if value > 0:
                boxes[part].append((at, at + value, place - 0.39, place + 0.11))
                at += value
        if bar.emulated:
            grey.append((0.0, at, place - 0.39, place + 0.11))
        seen = [value for _, value in _points(bar)]
        axes.plot(seen, [place + 0.28] * len(seen), "|", color=INK, markersize=5, alpha=0.8)
        axes.text(max(at, 0) + longest * 0.012, place - 0.14, value_text(bar.length, unit), va="center", size=SMALL, color=INK)
    for part, (colour, hatch) in looks.items():
        rectangles(axes, boxes[part], facecolor=colour, hatch=hatch, edgecolor=PAPER, linewidth=0.4)
    rectangles(axes, grey, facecolor="none", hatch=HATCH, edgecolor=PAPER, linewidth=0)
    axes.set_yticks(range(len(bars)), [view.style(bar.label).label for bar in bars], size=SMALL)
    for tick, bar in zip(axes.get_yticklabels(), bars, strict=True):
        tick.set_color(MUTED if bar.emulated else INK)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(bars) - 0.45, -0.55)
    axes.set_xlim(0, longest * 1.04)
    plain_numbers(axes, "x", most=6)


def _said(view: View, bar: Bar, unit: str, *, single: bool) -> str:
    name = view.style(bar.label).label + ("" if single else f" in {bar.scope}")
    parts = ", ".join(f"{part} {value_text(value, unit)}" for part, value in bar.parts if value > 0)
    return (
        f"{name}{' (emulated)' if bar.emulated and 'emulated' not in name else ''}: {value_text(bar.length, unit)}, of it {parts}"
    )
