"""How did the trials learn, and which were stopped?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tuneoff.base.format import counted
from tuneoff.experiment.spec import Objective
from tuneoff.judge.runs import Run
from tuneoff.record.derive import best_trial
from tuneoff.record.run_record import TrialRecord
from tuneoff.tell.plots.canvas import SMALL, Sheet, letters, value_scale, whole_numbers
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.steps import spread_out, thinned
from tuneoff.tell.plots.texts import lines, value_text
from tuneoff.tell.plots.theme import INK, SERIES
from tuneoff.tell.plots.view import WHY, View, most_note, run_name

MOST_TRIALS, MOST_EPOCHS = 60, 120  # of a run, of a trial
MOST_ADAPTERS = 12
ENDED, STOPPED, FAILED, BEST = "trained to its end", "stopped early", "failed", "best"
COLOURS = {ENDED: SERIES[4], STOPPED: SERIES[1], FAILED: SERIES[6]}
_WHAT = {"completed": ENDED, "pruned": STOPPED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One trial: its value by epoch, as far as it came."""

    trial: str
    what: str
    is_best: bool
    points: tuple[tuple[float, float], ...]


def draw(view: View) -> Drawing | None:
    """Draw the learning curves of one run per adapter; None where no trial has two epochs."""
    found = []
    for group, run, why in view.representative():
        drawn, total = _lines(run, run.spec.experiment.objective)
        if drawn and any(len(line.points) > 1 for line in drawn):
            found.append((group, run, why, drawn, total))
    found = found[:MOST_ADAPTERS]
    if not found:
        return None
    columns = 1 if len(found) == 1 else 2
    keys = [Line2D([], [], color=COLOURS[what], lw=1.2, marker=mark, label=what) for what, mark in _used(found)]
    keys.append(Line2D([], [], color=INK, lw=2, marker="D", label="the selected trial"))
    sheet = Sheet(
        "How did the trials learn, and which were stopped?",
        [1.7] * math.ceil(len(found) / columns),
        columns=columns,
        legend=keys,
    )
    rows: list[Row] = []
    parts = []
    for place, (group, run, why, drawn, total) in enumerate(found):
        objective, label = run.spec.experiment.objective, view.style(group.label).label
        title = lines(f"{label}: {why}", letters(sheet.panel_width), 1)
        axes = sheet.panel(place // columns, place % columns, title=title)
        _panel(axes, drawn, is_max=objective.mode == "max")
        if place % columns == 0:
            axes.set_ylabel(objective.metric.replace("_", " "), size=SMALL)
        rows += [
            (view.label(group.label), run.ref.seed, line.trial, line.what, line.is_best, int(epoch), value)
            for line in drawn
            for epoch, value in line.points
        ]
        parts.append(f"{label} ({why}): {_said(drawn, total)}")
    most = max(total for *_, total in found)
    return made(
        sheet,
        "learning",
        caption=f"{WHY}. A line is a trial; its last sign is where it was stopped or failed.",
        parts=parts,
        runs=[(run_name(view, group, run), run.ref.run_id) for group, run, *_ in found],
        columns=("adapter", "seed", "trial", "what", "selected", "epoch", "value"),
        rows=rows,
        notes=(
            most_note(view, MOST_ADAPTERS),
            f"Of {most} trials {MOST_TRIALS} are drawn, spread evenly over the values they reached; the selected one, the best "
            "and the worst are among them."
            if most > MOST_TRIALS
            else "",
            f"Of a trial with more than {MOST_EPOCHS} epochs about as many are drawn, with its least and greatest values."
            if any(len(trial.attempts[-1].epochs) > MOST_EPOCHS for item in found for trial in _trials(item[1]))
            else "",
        ),
    )


def _trials(run: Run) -> list[TrialRecord]:
    return [] if run.record is None else [trial for trial in run.record.trials if trial.attempts and trial.attempts[-1].epochs]


def _lines(run: Run, objective: Objective) -> tuple[list[Line], int]:
    """Return the lines that are drawn, and how many trials there are."""
    trials = _trials(run)
    best = best_trial(objective, run.record.trials) if run.record is not None else None
    reached = [(trial, _reached(trial, objective)) for trial in trials]
    ordered = sorted((item for item in reached if item[1] is not None), key=lambda item: (item[1] or 0, item[0].trial))
    kept = [ordered[place][0] for place in spread_out(len(ordered), MOST_TRIALS)]
    if best is not None and best not in kept:
        kept[len(kept) // 2] = best
    return [_line(trial, objective, is_best=trial is best) for trial in kept], len(trials)


def _reached(trial: TrialRecord, objective: Objective) -> float | None:
    values = [value for _, value in _points(trial, objective)]
    return (max(values) if objective.mode == "max" else min(values)) if values else None


def _points(trial: TrialRecord, objective: Objective) -> list[tuple[float, float]]:
    found = ((epoch.epoch, epoch.metrics.get(objective.metric)) for epoch in trial.attempts[-1].epochs)
    return [(float(epoch), value) for epoch, value in found if value is not None and math.isfinite(value)]


def _line(trial: TrialRecord, objective: Objective, *, is_best: bool) -> Line:
    points = tuple(thinned(_points(trial, objective), MOST_EPOCHS))
    return Line(trial=trial.trial, what=_WHAT.get(trial.state, FAILED), is_best=is_best, points=points)


def _used(found: Sequence[tuple[object, object, object, list[Line], int]]) -> list[tuple[str, str]]:
    there = {line.what for *_, drawn, _ in found for line in drawn}
    return [(what, mark) for what, mark in ((ENDED, ""), (STOPPED, "s"), (FAILED, "X")) if what in there]


def _panel(axes: Axes, drawn: Sequence[Line], *, is_max: bool) -> None:
    value_scale(axes, [value for line in drawn for _, value in line.points], is_max=is_max)
    for what, mark in ((ENDED, ""), (STOPPED, "s"), (FAILED, "X")):
        mine = [line for line in drawn if line.what == what and not line.is_best]
        if not mine:
            continue
        xs: list[float] = []
        ys: list[float] = []
        for line in mine:  # all as one shape, with a gap between any two
            xs += [*(x for x, _ in line.points), math.nan]
            ys += [*(y for _, y in line.points), math.nan]
        axes.plot(xs, ys, color=COLOURS[what], lw=0.8, alpha=0.75)
        dots = [line.points[0] for line in mine if len(line.points) == 1] if not mark else [line.points[-1] for line in mine]
        axes.plot([x for x, _ in dots], [y for _, y in dots], mark or ".", color=COLOURS[what], markersize=4, linestyle="none")
    for line in drawn:
        if line.is_best:
            axes.plot([x for x, _ in line.points], [y for _, y in line.points], color=INK, lw=1.8, zorder=4)
            axes.plot(*line.points[-1], "D", color=INK, markersize=4.5, zorder=4)
    whole_numbers(axes, "x")
    axes.set_xlabel("epoch", size=SMALL)


def _said(drawn: Sequence[Line], total: int) -> str:
    counts = [
        f"{sum(line.what == what for line in drawn)} {what}" for what in COLOURS if any(line.what == what for line in drawn)
    ]
    best = next((line for line in drawn if line.is_best), None)
    end = (
        ""
        if best is None
        else f"; the selected trial ends at {value_text(best.points[-1][1])} after epoch {best.points[-1][0]:g}"
    )
    return f"{counted(len(drawn), 'trial')} of {total} drawn: {', '.join(counts)}{end}"
