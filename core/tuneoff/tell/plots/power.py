"""How much power did the machine draw during a run? Of runs with a meter: a model's watts would be CPU use by another name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from tuneoff.errors import ResultsError
from tuneoff.judge.answers.answer import EstimatedGroup
from tuneoff.judge.runs import Run
from tuneoff.judge.stats.failures_as_infinity import middle
from tuneoff.measure.evidence import on_run_clock
from tuneoff.measure.slots import trial_window
from tuneoff.record.samples.reader import Samples, read_samples
from tuneoff.tell.plots.canvas import SMALL, Sheet, letters, patch_key, plain_numbers
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.made import Row, made
from tuneoff.tell.plots.steps import thinned
from tuneoff.tell.plots.texts import lines, shown, value_text
from tuneoff.tell.plots.theme import GRID, SERIES
from tuneoff.tell.plots.view import WHY, View, most_note, run_name

MOST_POINTS = 600  # of a run
MOST_ADAPTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Mean power between samples, in W: from here on so much, in seconds since the run's start."""

    points: tuple[tuple[float, float], ...]
    end: float
    kind: str
    meter: str
    is_thinned: bool


def draw(view: View) -> Drawing | None:
    """Draw the power of one run per adapter; None where nothing was metered."""
    found: list[tuple[EstimatedGroup, Run, str, Trace]] = []
    for group, run, why in view.representative():
        trace = _trace(view, run) if len(found) < MOST_ADAPTERS else None
        if trace is not None:
            found.append((group, run, why, trace))
    if not found:
        return None
    columns = 1 if len(found) == 1 else 2
    sheet = Sheet(
        "How much power did the machine draw during a run?",
        [1.4] * math.ceil(len(found) / columns),
        columns=columns,
        legend=[Line2D([], [], color=SERIES[0], lw=1.2, label="power"), patch_key("trials run", GRID)],
    )
    rows: list[Row] = []
    parts = []
    for place, (group, run, why, trace) in enumerate(found):
        label = view.style(group.label).label
        text = lines(f"{label}: {why} ({trace.kind})", letters(sheet.panel_width), 1)
        axes = sheet.panel(place // columns, place % columns, title=text)
        _panel(axes, run, trace)
        if place % columns == 0:
            axes.set_ylabel("W", size=SMALL)
        rows += [(view.label(group.label), run.ref.seed, trace.kind, x, watts) for x, watts in trace.points]
        parts.append(f"{label} ({why}), {trace.kind} by {trace.meter}: {_said(trace)}")
    return made(
        sheet,
        "power",
        caption=f"{WHY}. The mean power of the whole host, other programs included, between two samples.",
        parts=parts,
        runs=[(run_name(view, group, run), run.ref.run_id) for group, run, *_ in found],
        columns=("adapter", "seed", "kind", "seconds", "watts"),
        rows=rows,
        notes=(
            most_note(view, MOST_ADAPTERS),
            f"Runs with more than {MOST_POINTS} samples are thinned; the least and the greatest of each stretch are kept."
            if any(trace.is_thinned for *_, trace in found)
            else "",
        ),
    )


def _trace(view: View, run: Run) -> Trace | None:
    if run.record is None or run.ref.is_continued:
        return None
    try:
        samples = on_run_clock(read_samples(view.results.folder / view.results.run_folder(run.record)), run.record)
    except ResultsError:  # a damaged file: `tuneoff verify` names it
        return None
    if samples is None:
        return None
    points, end = _watts(samples)
    points = _from_start(points)
    if not points or end <= 0:
        return None
    kept = tuple(thinned(points, MOST_POINTS))
    meter = shown(samples.header.meter, 40)
    return Trace(points=kept, end=end, kind=samples.header.kind, meter=meter, is_thinned=len(kept) < len(points))


def _watts(samples: Samples) -> tuple[list[tuple[float, float]], float]:
    """Return the power between samples, of all domains together, and the last sample's time."""
    series = [one for one in samples.power.values() if len(one.times) > 1]
    if not series:
        return [], 0.0
    grid = sorted({t for one in series for t in one.times})
    grid = [t for t in grid if max(one.times[0] for one in series) <= t <= min(one.times[-1] for one in series)]
    return _between(grid, [sum(one.at(t) for one in series) for t in grid]), (grid[-1] / 1e9 if grid else 0.0)


def _from_start(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points without what was sampled before the run."""
    before = [watts for x, watts in points if x <= 0]
    return ([(0.0, before[-1])] if before else []) + [(x, watts) for x, watts in points if x > 0]


def _between(times: Sequence[int], joules: Sequence[float]) -> list[tuple[float, float]]:
    return [
        (start / 1e9, (after - before) * 1e9 / (end - start))
        for (start, end), (before, after) in zip(pairwise(times), pairwise(joules), strict=True)
        if end > start
    ]


def _panel(axes: Axes, run: Run, trace: Trace) -> None:
    window = trial_window(run.record) if run.record is not None else None
    if window is not None:
        axes.axvspan(window[0] / 1e9, window[1] / 1e9, color=GRID, lw=0, zorder=0)
    xs, ys = [x for x, _ in trace.points], [watts for _, watts in trace.points]
    axes.step([*xs, trace.end], [*ys, ys[-1]], where="post", color=SERIES[0], lw=1.0)
    axes.set_xlim(0, max(trace.end, xs[-1]))
    axes.set_ylim(0, max(ys) * 1.08 or 1)
    plain_numbers(axes, "both", most=5)
    axes.set_xlabel("seconds since the start of deploy", size=SMALL)


def _said(trace: Trace) -> str:
    values = [watts for _, watts in trace.points]
    return f"median {value_text(middle(values), 'W')}, from {value_text(min(values))} to {value_text(max(values), 'W')}"
