"""What does accuracy cost, in energy and in money?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from tuneoff.base.format import shown_unit
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.failures_as_infinity import middle
from tuneoff.record.metric_value import Kind
from tuneoff.tell.plots.canvas import SMALL, Sheet, letters, limits, log_scale, marker_key, plain_numbers
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.steps import spread_out
from tuneoff.tell.plots.texts import lines, value_text
from tuneoff.tell.plots.theme import Style
from tuneoff.tell.plots.view import FEW_SCOPES, View, kinds_text, tried

PRICES = (("energy", "energy.per_completed_trial"), ("cost", "cost.per_completed_trial"))  # question, its usual metric
QUALITY = ("quality", "quality.test")
MOST_POINTS = 60  # of a group
FAR = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A group's runs: what each paid, and what it got. The medians count a run that failed as the worst."""

    scope: Scope
    label: str
    emulated: bool
    price: str
    unit: str
    runs: tuple[tuple[int, float, float], ...]  # (seed, price, quality)
    kinds: frozenset[Kind]
    median: tuple[float, float]


def draw(view: View) -> Drawing | None:
    """Draw quality against energy and against cost, a row per scope: runs and medians, and no ranking of them."""
    question = view.question(QUALITY[0])
    quality = question.metric if question is not None else QUALITY[1]
    is_max = question is None or question.better == "max"
    scopes, note = view.scopes(FEW_SCOPES)
    clouds = [cloud for scope in scopes for cloud in _clouds(view, scope, quality, is_max=is_max)]
    shown = [scope for scope in scopes if any(cloud.scope == scope for cloud in clouds)]
    if not shown:
        return None
    prices = [name for name, _ in PRICES if any(cloud.price == name for cloud in clouds)]
    labels = list(dict.fromkeys(cloud.label for cloud in clouds))
    keys = [marker_key(view.style(label)) for label in labels]
    sheet = Sheet(
        "What does quality cost, in energy and in money?",
        [2.0] * len(shown),
        columns=len(prices),
        gap=0.75,
        left=0.78,
        right=0.3,
        legend=keys,
    )
    rows: list[Row] = []
    parts: list[str] = []
    for place, scope in enumerate(shown):
        for column, price in enumerate(prices):
            mine = [cloud for cloud in clouds if cloud.scope == scope and cloud.price == price]
            if not mine:
                continue
            title = "" if column else lines(scope.text, letters(sheet.panel_width), 1)
            axes = sheet.panel(place, column, title=title)
            rows += _panel(view, axes, mine)
            if column == 0:
                axes.set_ylabel(f"{quality}, {'higher' if is_max else 'lower'} is better", size=SMALL)
            parts += [_said(view, cloud, single=len(shown) == 1) for cloud in mine]
    lost = [cloud for cloud in clouds if not all(map(math.isfinite, cloud.median))]
    return made(
        sheet,
        "quality_price",
        caption=(
            "Small signs are runs, large ones an adapter's medians with failed runs as the worst. Which differences hold, the "
            "verdicts say."
        ),
        parts=parts,
        columns=("scope", "adapter", "price", "unit", "kind", "seed", "price_value", "quality"),
        rows=rows,
        notes=(
            note,
            "At least half of the runs failed, so there is no median: "
            + ", ".join(dict.fromkeys(f"{view.style(cloud.label).label} ({cloud.scope.text})" for cloud in lost))
            + "."
            if lost
            else "",
            f"Of a group with more than {MOST_POINTS} runs as many are shown, the cheapest and the dearest among them."
            if any(len(cloud.runs) > MOST_POINTS for cloud in clouds)
            else "",
        ),
    )


def _clouds(view: View, scope: Scope, quality: str, *, is_max: bool) -> list[Cloud]:
    worst = -math.inf if is_max else math.inf
    found: list[Cloud] = []
    for name, usual in PRICES:
        question = view.question(name)
        metric = question.metric if question is not None else usual
        for group in view.groups(scope):
            points: list[tuple[int, float, float]] = []
            failed = 0
            kinds: set[Kind] = set()
            unit = ""
            for run in tried(view.runs(group)):
                price, value = run.metric(metric), run.value(quality)
                if run.ref.is_failure:
                    failed += 1
                elif price is not None and price.value is not None and value is not None:
                    unit, factor = shown_unit(price.unit)
                    points.append((run.ref.seed, price.value * factor, value))
                    kinds.add(price.kind)
            if points:
                prices = middle([price for _, price, _ in points] + [math.inf] * failed)
                qualities = middle([value for _, _, value in points] + [worst] * failed)
                found.append(
                    Cloud(
                        scope=scope,
                        label=group.label,
                        emulated=group.emulated,
                        price=name,
                        unit=unit,
                        runs=tuple(points),
                        kinds=frozenset(kinds),
                        median=(prices, qualities),
                    )
                )
    return found


def _panel(view: View, axes: Axes, clouds: Sequence[Cloud]) -> list[Row]:
    xs = [price for cloud in clouds for _, price, _ in cloud.runs]
    ys = [value for cloud in clouds for _, _, value in cloud.runs]
    rows: list[Row] = []
    for cloud in clouds:
        style = view.style(cloud.label)
        ordered = sorted(cloud.runs, key=lambda item: item[1])
        kept = [ordered[place] for place in spread_out(len(ordered), MOST_POINTS)]
        _points(axes, [(price, value) for _, price, value in kept], style, size=3.2, alpha=0.55)
        kind = kinds_text(sorted(cloud.kinds))
        head = (cloud.scope.text, view.label(cloud.label), cloud.price, cloud.unit, kind)
        rows += [(*head, seed, price, value) for seed, price, value in kept]
        if all(map(math.isfinite, cloud.median)):
            _points(axes, [cloud.median], style, size=9, alpha=1.0)
            rows.append((*head, None, *cloud.median))
    if min(xs) > 0 and max(xs) / min(xs) > FAR:
        log_scale(axes, "x", min(xs), max(xs))
        axes.set_xlim(min(xs) / 1.3, max(xs) * 1.3)
    else:
        plain_numbers(axes, "x", most=4)
        axes.set_xlim(*limits([*xs, 0.0] if min(xs) > 0 and max(xs) / min(xs) > 3 else xs, 0.06))
    plain_numbers(axes, "y", most=5)
    axes.set_ylim(*limits(ys, 0.08))
    kind = kinds_text(sorted({kind for cloud in clouds for kind in cloud.kinds}))
    axes.set_xlabel(f"{clouds[0].price} per completed trial, {clouds[0].unit} ({kind})", size=SMALL)
    return rows


def _points(axes: Axes, points: Sequence[tuple[float, float]], style: Style, *, size: float, alpha: float) -> None:
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        linestyle="none",
        marker=style.marker,
        markersize=size,
        markerfacecolor=style.fill,
        markeredgecolor=style.colour,
        markeredgewidth=1.0,
        alpha=alpha,
        clip_on=False,
        zorder=3,
    )


def _said(view: View, cloud: Cloud, *, single: bool) -> str:
    name = view.style(cloud.label).label + ("" if single else f" in {cloud.scope.text}")
    price, value = cloud.median
    if not (math.isfinite(price) and math.isfinite(value)):
        return f"{name}: no median {cloud.price}"
    kind = kinds_text(sorted(cloud.kinds))
    emulated = ", emulated" if cloud.emulated else ""
    return f"{name}: quality {value_text(value)} for {value_text(price, cloud.unit)} of {cloud.price} ({kind}){emulated}"
