"""What `run` and `compare` end with: one table of frameworks, the choice in words, and what weakens it."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.format import ESTIMATED, MISSING, duration_text, figure, number, score, shown_unit, wrapped
from tuneoff.judge.answers.answer import EstimatedGroup, Outcome
from tuneoff.judge.choice.choice import Best, Choice, Row, Setting, failures, ratio_text
from tuneoff.judge.stats.location import Interval

WIDTH = 80
WIDEST = 1000  # columns, to measure a table
LEAST_COLUMNS = 3  # of the table, however narrow the terminal is
JOB_TIME, ENERGY, QUALITY, VALIDATED = "time.jct_without_test", "energy.per_completed_trial", "quality.test", "quality.validation"
SIGNS = {Outcome.BETTER: "+", Outcome.WORSE: "-", Outcome.UNDECIDED: "?"}  # against the reference, where there are verdicts
MOST_CAVEATS = 3
MOST_PARAMETERS = 4  # of the best configuration, where there is a choice to tell too

Cell = Callable[[Row, Setting], str]


def ending(choice: Choice, width: int | None = None) -> list[str]:
    """Return the lines, none wider than `width`, at most 80 columns, where it can be broken."""
    most = min(width, WIDTH) if width is not None else WIDTH
    has_choice = sum(not row.is_floor for setting in choice.settings[:1] for row in setting.rows) > 1
    below = list(choice.lines) if has_choice else []
    if choice.deciding is not None:
        about = f", about {duration_text(choice.deciding.seconds)}" if choice.deciding.seconds is not None else ""
        below += [f"To decide{about}:", f"  {choice.deciding.command}"]
    if choice.best is not None:
        below.append(_best(choice, choice.best, MOST_PARAMETERS if has_choice else None))
    below += [f"! {text}" for text in choice.caveats[:MOST_CAVEATS]]
    more = len(choice.caveats) - MOST_CAVEATS
    below += [f"! and {more} more on the page"] if more > 0 else []
    above = table(choice, most)
    return [*above, *([""] if above else []), *wrapped(below, most)]


def table(choice: Choice, width: int) -> list[str]:
    """Return a row per framework and sampler, emulated ones left out, with as many columns as fit."""
    rows = [(row, setting) for setting in choice.settings for row in setting.rows if not row.is_emulated]
    if not rows:
        return []
    columns = list(_columns(choice, [row for row, _ in rows]))
    lines = _lines(columns, rows)
    while max(map(len, lines)) > width and len(columns) > LEAST_COLUMNS:
        columns.pop()
        lines = _lines(columns, rows)
    return lines


def _columns(choice: Choice, rows: Sequence[Row]) -> Iterator[tuple[str, Cell]]:
    """Yield heading and cell of each column, the most important first."""
    first = choice.settings[0]
    reference = next((row.name for row in first.rows if row.label == first.reference), "")
    yield "framework", lambda row, _: row.name
    if len(choice.settings) > 1:
        yield "sampler", lambda _, setting: setting.name
    if all(len(row.columns) == 1 for row in rows):
        yield "job time, s\nmedian (range)", lambda row, _: _job_time(row.first.group)
    if len(rows) > 1:
        yield f"x {reference}", _ratio
    yield "added\ns/trial", lambda row, _: _added(column.added.per_trial for column in row.columns.values())
    yield "added\ns/job", lambda row, _: _added(column.added.per_job for column in row.columns.values())
    if any(map(_failed, rows)):
        yield "runs\nfailed", lambda row, _: _failed(row)
    if all(len(row.columns) == 1 for row in rows):
        name = QUALITY if any(row.first.group.estimates[QUALITY].median is not None for row in rows) else VALIDATED
        head = "test\nscore" if name == QUALITY else "valid-\nation"
        yield head, lambda row, _: _quality(row.first.group, name)
        yield "energy\nJ/trial", lambda row, _: _energy(row.first.group)


def _lines(columns: Sequence[tuple[str, Cell]], rows: Sequence[tuple[Row, Setting]]) -> list[str]:
    from rich.console import Console
    from rich.table import Table

    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for heading, _ in columns:
        made.add_column(heading, justify="left" if heading in ("framework", "sampler") else "right", no_wrap=True)
    for row, setting in rows:
        made.add_row(*(cell(row, setting) for _, cell in columns))
    text = io.StringIO()
    Console(file=text, width=WIDEST, color_system=None, force_terminal=False, highlight=False).print(made)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def _failed(row: Row) -> str:
    """Return how many of a row's runs failed: "" for none."""
    failed, tried = failures(row.columns.values())
    return f"{failed}/{tried}" if failed else ""


def _added(intervals: Iterable[Interval | None]) -> str:
    """Return what a framework adds; over several columns the least and the most."""
    found = sorted(max(0.0, added.estimate) for added in intervals if added is not None)
    if not found:
        return MISSING
    return figure(found[0]) if len(found) == 1 else f"{figure(found[0])} to {figure(found[-1])}"


def _ratio(row: Row, setting: Setting) -> str:
    """Return the ratio to the reference of its setting; over several columns the middle, the least and the greatest one."""
    if row.label == setting.reference:
        return "1"
    ratios = [ratio for column in row.columns.values() if (ratio := column.ratios.get(setting.reference or "")) is not None]
    if not ratios:
        return MISSING
    if len(row.columns) == 1:
        return f"{ratio_text(ratios[0])}{SIGNS.get(ratios[0].outcome, '')}"
    found = sorted(ratio.estimate for ratio in ratios)
    return f"{number(found[len(found) // 2])}x ({number(found[0])} to {number(found[-1])} over {len(found)})"


def _job_time(group: EstimatedGroup) -> str:
    estimate = group.estimates[JOB_TIME]
    known = sorted(value.value / MILLISECONDS for value in estimate.values if value.value is not None)
    if estimate.median is None or not known:
        return MISSING
    median = "failed" if math.isinf(estimate.median.estimate) else number(estimate.median.estimate / MILLISECONDS)
    return median if len(known) == 1 else f"{median} ({number(known[0])}-{number(known[-1])})"


def _energy(group: EstimatedGroup) -> str:
    estimate = group.estimates[ENERGY]
    if estimate.median is None or math.isinf(estimate.median.estimate):
        return MISSING
    joules = estimate.median.estimate * shown_unit(estimate.unit)[1]
    return f"{ESTIMATED if 'estimated' in estimate.kinds else ''}{figure(joules)}"


def _quality(group: EstimatedGroup, metric: str) -> str:
    median = group.estimates[metric].median
    if median is None:
        return MISSING
    return "failed" if math.isinf(median.estimate) else score(median.estimate)


def _best(choice: Choice, best: Best, most: int | None) -> str:
    """Return the best score, and the first `most` parameters of its configuration; None: all."""
    name = next((row.name for setting in choice.settings for row in setting.rows if row.label == best.label), best.label)
    parameters = [f"{key}={_value(value)}" for key, value in best.configuration.items()]
    rest = ", ..." if most is not None and len(parameters) > most else ""
    return f"Best {best.metric}: {score(best.value)} ({name}): {', '.join(parameters[:most])}{rest}"


def _value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
