"""How often is how good a value reached, and how soon?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from matplotlib.axes import Axes

from tuneoff.answers.model import Scope
from tuneoff.experiment.spec import Objective
from tuneoff.plots.canvas import STEEP, line_key, plain_numbers
from tuneoff.plots.clocks import CLOCKS, end_of, panels, sheet_of, time_axis
from tuneoff.plots.drawing import Drawing
from tuneoff.plots.made import Row, made
from tuneoff.plots.steps import at
from tuneoff.plots.theme import Style
from tuneoff.plots.view import Run, View, tried
from tuneoff.plots.words import value_text
from tuneoff.stats.runtime import ecdf
from tuneoff.words import counted

TARGETS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of a group's runs and targets that were reached, on one clock, as steps."""

    scope: Scope
    label: str
    clock: str
    steps: tuple[tuple[float, float], ...]
    runs: int
    failed: int
    end: float


def draw(view: View) -> Drawing | None:
    """Draw the share of reached targets of each adapter on both clocks, a row of panels per scope."""
    scopes, note = view.scopes()
    found = {scope: _shares(view, scope) for scope in scopes}
    shown = [scope for scope in scopes if any(share.steps for share in found[scope])]
    if not shown:
        return None
    labels = list(dict.fromkeys(share.label for scope in shown for share in found[scope]))
    sheet = sheet_of(
        "How often is a target value reached, and how soon?", shown, [line_key(view.style(label)) for label in labels]
    )
    rows: list[Row] = []
    for scope, clock, axes, is_first in panels(sheet, shown):
        rows += _panel(view, axes, [share for share in found[scope] if share.clock == clock], clock)
        if is_first:
            axes.set_ylabel("share reached")
    by_anchor = any(_anchor(view, scope) is not None for scope in shown)
    between = (
        "between random search's value and the best known one"
        if by_anchor
        else "from the worst first value of a run to the best value of all, the same for all adapters of a scope"
    )
    return made(
        sheet,
        "ecdf",
        caption=(
            f"Of all pairs of a run and one of {TARGETS} validation targets, {between}: the share reached by then. "
            "A run that failed reaches none and is counted, so that with a failure the share stays below 1."
        ),
        parts=[_said(view, share, single=len(shown) == 1) for scope in shown for share in found[scope]],
        columns=("scope", "adapter", "clock", "x", "share"),
        rows=rows,
        notes=(note,),
    )


def targets(values: Sequence[Sequence[float]], objective: Objective, anchor: Mapping[str, float] | None) -> list[float]:
    """Return the targets, the easiest first; `values`: the incumbents of each run. None where all runs have one same value."""
    if anchor is not None:
        worst, best = anchor["random_search"], anchor["best_known"]
    else:
        firsts, lasts = [one[0] for one in values if one], [one[-1] for one in values if one]
        if not firsts:
            return []
        pick, other = (min, max) if objective.mode == "max" else (max, min)
        worst, best = pick(firsts), other(lasts)
    if worst == best:
        return [best]
    if objective.mode == "min" and best > 0 and worst / best > STEEP:
        return [worst * (best / worst) ** (number / TARGETS) for number in range(1, TARGETS)] + [best]
    return [worst + (best - worst) * number / TARGETS for number in range(1, TARGETS)] + [best]


def runtimes(steps: Sequence[tuple[float, float]], goals: Sequence[float], *, is_max: bool) -> list[float]:
    """Return when each target was reached first, inf where it never was; `steps`: of an incumbent, `goals`: easiest first."""
    found: list[float] = []
    place = 0
    for goal in goals:
        while place < len(steps) and (steps[place][1] < goal if is_max else steps[place][1] > goal):
            place += 1
        found.append(steps[place][0] if place < len(steps) else math.inf)
    return found


def _shares(view: View, scope: Scope) -> list[Share]:
    groups = [(group, tried(view.runs(group))) for group in view.groups(scope)]
    groups = [(group, runs) for group, runs in groups if runs]
    if not groups:
        return []
    objective = view.objective(groups[0][1][0])
    real = [run for group, runs in groups for run in runs if not group.emulated] or list(
        chain.from_iterable(runs for _, runs in groups)
    )
    values = [[step.value for step in view.improvements(run)] for run in real]
    goals = targets(values, objective, _anchor(view, scope))
    if not goals:
        return []
    return [
        _share(view, scope, group.label, runs, clock, goals, is_max=objective.mode == "max")
        for group, runs in groups
        for clock in CLOCKS
    ]


def _share(
    view: View, scope: Scope, label: str, runs: Sequence[Run], clock: str, goals: Sequence[float], *, is_max: bool
) -> Share:
    reached: list[float] = []
    for run in runs:
        steps = [(float(getattr(step, clock)), step.value) for step in view.improvements(run)]
        reached += runtimes(steps, goals, is_max=is_max)
    return Share(
        scope=scope,
        label=label,
        clock=clock,
        steps=ecdf(reached, len(runs) * len(goals)),
        runs=len(runs),
        failed=sum(run.ref.is_failure for run in runs),
        end=max(end_of(run, clock) for run in runs),
    )


def _anchor(view: View, scope: Scope) -> Mapping[str, float] | None:
    anchors = view.answers.analysis.get("anchors") or {}
    found = anchors.get(scope.task)
    return found if found and {"random_search", "best_known"} <= set(found) else None


def _panel(view: View, axes: Axes, shares: Sequence[Share], clock: str) -> list[Row]:
    starts = [share.steps[0][0] for share in shares if share.steps]
    ends = [max(share.end, share.steps[-1][0] if share.steps else 0) or 1.0 for share in shares]
    time_axis(axes, clock, starts, ends)
    axes.set_ylim(-0.03, 1.03)
    plain_numbers(axes, "y", most=4)
    rows: list[Row] = []
    for share, end in zip(shares, ends, strict=True):
        style = view.style(share.label)
        _line(axes, share, style, end)
        rows += [(share.scope.text, style.label, clock, x, value) for x, value in share.steps]
    return rows


def _line(axes: Axes, share: Share, style: Style, end: float) -> None:
    xs, ys = [0.0, *(x for x, _ in share.steps)], [0.0, *(value for _, value in share.steps)]
    axes.step([*xs, end], [*ys, ys[-1]], where="post", color=style.colour, linestyle=style.line, lw=1.5)
    axes.plot(
        [end],
        [ys[-1]],
        linestyle="none",
        marker=style.marker,
        markerfacecolor=style.fill,
        markeredgecolor=style.colour,
        clip_on=False,
    )


def _said(view: View, share: Share, *, single: bool) -> str:
    name = view.style(share.label).label + ("" if single else f" in {share.scope.text}")
    middle = share.end // 2 if share.clock == "trials" else share.end / 2
    unit = "trials" if share.clock == "trials" else "s"
    last = share.steps[-1][1] if share.steps else 0.0
    failed = f", {share.failed} failed" if share.failed else ""
    return (
        f"{name} ({counted(share.runs, 'run')}{failed}): {100 * at(share.steps, middle, 0.0):.0f} % after "
        f"{value_text(middle, unit)}, {100 * last:.0f} % in the end"
    )
