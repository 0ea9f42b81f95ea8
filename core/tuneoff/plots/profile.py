"""How many runs come how near to the best known value, over all tasks?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuneoff.answers.frozen import frozen
from tuneoff.answers.regret import VALIDATION, normalised
from tuneoff.experiment.names import strategy_text
from tuneoff.plots.canvas import SMALL, Sheet, end_marker, letters, line_key, plain_numbers
from tuneoff.plots.drawing import Drawing
from tuneoff.plots.made import Row, made
from tuneoff.plots.steps import at
from tuneoff.plots.view import View, tried
from tuneoff.plots.words import lines
from tuneoff.stats.tasks import performance_profile
from tuneoff.words import counted

FARTHEST = 2.0  # regret that is drawn; random search ends at 1
MOST_PANELS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The share of an adapter's runs whose regret is at most so much, each task with the same weight."""

    strategy: str
    label: str
    tasks: int
    runs: int
    steps: tuple[tuple[float, float], ...]


def draw(view: View) -> Drawing | None:
    """Draw a profile per adapter; None without tasks that have anchors."""
    profiles = _profiles(view)
    if not profiles:
        return None
    every = list(dict.fromkeys(profile.strategy for profile in profiles))
    strategies = every[:MOST_PANELS]
    profiles = [profile for profile in profiles if profile.strategy in strategies]
    columns = 1 if len(strategies) == 1 else 2
    labels = list(dict.fromkeys(profile.label for profile in profiles))
    sheet = Sheet(
        "How many runs come how near to the best known value, over all tasks?",
        [2.2] * math.ceil(len(strategies) / columns),
        columns=columns,
        legend=[line_key(view.style(label)) for label in labels],
    )
    rows: list[Row] = []
    for place, strategy in enumerate(strategies):
        mine = [profile for profile in profiles if profile.strategy == strategy]
        title = f"{strategy}, {counted(max(profile.tasks for profile in mine), 'task')}"
        axes = sheet.panel(place // columns, place % columns, title=lines(title, letters(sheet.panel_width), 1))
        left = min(0.0, *(profile.steps[0][0] for profile in mine if profile.steps))
        for profile in mine:
            style = view.style(profile.label)
            steps = [step for step in profile.steps if step[0] <= FARTHEST]
            xs, ys = [left - 0.05, *(x for x, _ in steps)], [0.0, *(share for _, share in steps)]
            axes.step([*xs, FARTHEST], [*ys, ys[-1]], where="post", color=style.colour, linestyle=style.line, lw=1.5)
            end_marker(axes, style, FARTHEST, ys[-1])
            rows += [(strategy, view.label(profile.label), regret, share) for regret, share in steps]
        axes.set_xlim(left - 0.05, FARTHEST)
        axes.set_ylim(-0.03, 1.03)
        plain_numbers(axes, "both", most=5)
        axes.set_xlabel("normalised regret at most", size=SMALL)
        if place % columns == 0:
            axes.set_ylabel("share of runs", size=SMALL)
    return made(
        sheet,
        "profile",
        caption=(
            "The share of runs that end within so much regret: 0 is the best known validation value of a task, 1 the median of "
            "random search. Each task has the same weight, and a run that failed is within none."
        ),
        parts=[_said(view, profile) for profile in profiles],
        columns=("scope", "adapter", "regret", "share"),
        rows=rows,
        notes=(
            f"Of {len(every)} samplers and pruners the first {MOST_PANELS} are shown." if len(every) > MOST_PANELS else "",
            _fewer(view, profiles),
        ),
    )


def _profiles(view: View) -> list[Profile]:
    plan = frozen(view.results.plan.analysis)
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    for group in view.answers.groups:
        anchors = plan.anchors.get(group.scope.task)
        if not group.scope.task or anchors is None or group.same_as is not None:
            continue
        for run in tried(view.runs(group)):
            value = run.value(VALIDATION)
            if anchors.metric not in (None, view.objective(run).metric) or (value is None and not run.ref.is_failure):
                continue
            regret = math.inf if value is None else normalised(value, anchors)
            strategy = strategy_text(view.spec(run).experiment)
            scores.setdefault((strategy, group.label), {}).setdefault(group.scope.task, []).append(regret)
    found = []
    for (strategy, label), by_task in scores.items():
        taus = sorted({regret for regrets in by_task.values() for regret in regrets if math.isfinite(regret)})
        if len(by_task) > 1:
            shares = performance_profile(by_task, taus) if taus else ()
            runs = sum(map(len, by_task.values()))
            steps = tuple(zip(taus, shares, strict=True))
            found.append(Profile(strategy=strategy, label=label, tasks=len(by_task), runs=runs, steps=steps))
    return found if any(profile.steps for profile in found) else []


def _fewer(view: View, profiles: Sequence[Profile]) -> str:
    most = max(profile.tasks for profile in profiles)
    fewer = [f"{view.style(one.label).label} ({one.strategy}) {one.tasks}" for one in profiles if one.tasks < most]
    return f"Not all adapters have runs of all {most} tasks: {', '.join(fewer)}." if fewer else ""


def _said(view: View, profile: Profile) -> str:
    shares = [f"{100 * at(profile.steps, regret, 0.0):.0f} % within {regret:g}" for regret in (0.1, 0.5, 1.0)]
    many = f"{counted(profile.runs, 'run')} on {counted(profile.tasks, 'task')}"
    return f"{view.style(profile.label).label}, {profile.strategy} ({many}): {', '.join(shares)}"
