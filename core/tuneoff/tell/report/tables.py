"""What `run` and `compare` end with: a table of frameworks with the choice in words; with `--verbose` that of all figures.

Of both as many columns are shown as fit the terminal. A figure has the same digits, units and marks in them and on the page.
`report --text` prints the same ending, the verdicts in words and what cannot be concluded.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.commands import command
from tuneoff.base.format import (
    ESTIMATED,
    MISSING,
    counted,
    counted_range,
    duration_range,
    duration_text,
    figure,
    folded,
    listed,
    number,
    score,
    seconds,
    shown_unit,
    times,
    wrapped,
)
from tuneoff.experiment.metric_catalogue import STEPS, Metric, metric
from tuneoff.experiment.names import training_name
from tuneoff.experiment.plan import RULES
from tuneoff.judge.answers.answer import Answers, Outcome
from tuneoff.judge.answers.phrases import claims, sentence
from tuneoff.judge.choice.choice import (
    ENERGY,
    QUALITY,
    BestConfiguration,
    Choice,
    LengthTable,
    Point,
    Row,
    ScalingCurve,
    Setting,
    failures,
)
from tuneoff.judge.choice.curve import FIGURES, curve_amount, x_text
from tuneoff.judge.choice.releases import SMALLEST_STEP, shown_steps, smallest_step_text
from tuneoff.judge.groups import Group
from tuneoff.judge.metrics import COLUMNS
from tuneoff.judge.stats.location import Interval, middle
from tuneoff.judge.warnings import ResultsWarning
from tuneoff.tell.report.notes import NO_CIRCUMSTANCES, Circumstances, cost_notes, notes

if TYPE_CHECKING:
    from rich.table import Table

FAILED = "failed"  # in place of a median that failed runs reach: they are worse than any that is done
LEAST_MILLISECONDS = 5.0  # shown as 0.01 s
WIDEST = 1000  # columns
LEAST_COLUMNS = 3  # of figures, however narrow the terminal
WIDTH = 80
TABLE_WIDTH = 88  # of the table of frameworks, where the terminal has so many columns or there is none
JOB_TIME = "time.jct_without_test"
SIGNS = {  # of an outcome on time, and its words
    Outcome.BETTER: ("▲", "shown to be faster"),
    Outcome.WORSE: ("▼", "shown to be slower"),
    Outcome.EQUIVALENT: ("=", "as fast, within the margin"),
    Outcome.EQUIVALENT_THOUGH_DIFFERENT: ("≈", "as fast, within the margin, though different"),
    Outcome.UNDECIDED: ("?", Outcome.UNDECIDED.text),
    Outcome.NOT_JUDGED: ("·", "too few seeds for a verdict"),
}
MOST_WARNINGS = 3
MOST_PARAMETERS = 4  # of the best configuration, where there is a choice to tell too

Cell = Callable[[Row, Setting], str]
T = TypeVar("T")


class FigureCell(NamedTuple):
    """A figure: its text, what stands below it, `~` where it is estimated, and why it is missing."""

    text: str
    below: str = ""
    mark: str = ""
    reason: str = ""


def figure_cell(group: Group, column: Metric, *, with_failed: bool = False) -> FigureCell:
    """Return the median over the seeds, and below it lowest–highest of the runs that are done; `with_failed`: and the others."""
    estimate = group.estimate(column.name)
    median, values = estimate.middle, estimate.present
    if median is None:
        return FigureCell(MISSING, reason="; ".join(estimate.lacking) or "no run is done")
    low, high = (amount_text(value, estimate.unit, column) for value in (min(values), max(values)))
    lacking = sum(estimate.lacking.values())
    below = [f"{low}–{high}" if low != high else low if estimate.failed else ""]
    below += [f"{estimate.failed} failed"] if with_failed and estimate.failed else []
    return FigureCell(
        text=FAILED if math.isinf(median) else amount_text(median, estimate.unit, column),
        below=", ".join(filter(None, below)),
        mark=ESTIMATED if estimate.is_estimated else "",
        reason=f"of {len(values)} of {counted(len(values) + lacking, 'run')}" if lacking else "",
    )


def amount_text(value: float, unit: str, column: Metric) -> str:
    """Return a value that is in `unit` as a figure in the column's: scores keep four decimals, seconds two."""
    column_unit = unit_of(unit, column)
    if unit == "ms" and column_unit == "s":
        return "<0.01" if 0 < value < LEAST_MILLISECONDS else number(value / 1000)
    if "_" in unit:  # the name of a metric, as `test_accuracy`
        return score(value)
    return figure(value * (1.0 if unit == column_unit else shown_unit(unit)[1]))


def unit_of(unit: str, column: Metric) -> str:
    """Return the unit in which a column shows values that are in `unit`."""
    return column.table_unit or shown_unit(unit)[0]


def render(groups: Sequence[Group], width: int | None = None, circumstances: Circumstances = NO_CIRCUMSTANCES) -> str:
    """Return the table and its notes as text without colours or escape codes.

    `width`: columns of the terminal; None: no terminal, as wide as it comes. The most important figures are shown, as many
    as fit; all are on the page and in the export. The table is never cut: at worst it is wider than the terminal.
    Units are the same in all tables. The rows are the groups in the file's order and in no other, which is not a ranking.
    """
    columns = [*map(metric, COLUMNS)]
    lines = _fitted(columns, lambda fitting: _table(groups, fitting), width)
    below = notes(groups)
    if any(group.done for group in groups):
        below += cost_notes(groups, {column.name: column.heading for column in columns}, circumstances)
    return "\n".join(line.rstrip() for line in (*lines, *wrapped(below, width))) + "\n"


def _table(groups: Sequence[Group], columns: Sequence[Metric]) -> Table:
    """Return the table: medians, lowest–highest of the runs that are done below them, `~` before what is estimated."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    has_variants = any(group.variant for group in groups)
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for heading in ("adapter", *(["variant"] if has_variants else []), "sampler"):
        table.add_column(heading, no_wrap=True)
    headings = []  # each name with its unit, which for a score is its metric's name
    for column in columns:
        units = {of.unit for group in groups if (of := group.estimate(column.name)).present}
        unit = unit_of(column.unit or (units.pop() if len(units) == 1 else "objective"), column)
        heading = f"{column.heading}\n{unit}".replace("_", "_\n")
        headings.append(heading.replace("w/o test", "\nw/o test").replace("/t", "/\nt"))
    for heading in (*headings, "trials\ndone/failed\n/pruned", "runs\ndone/\nplan"):
        table.add_column(heading, justify="right", no_wrap=True)
    for group in groups:
        # Below the adapter's name another platform, and the flag that keeps it out of comparisons; below the sampler the pruner.
        has_platform = group.spec.platform == "local" or f"@{group.spec.platform}" in group.label
        names = [folded(group.label), "" if has_platform else group.spec.platform, group.excluded]
        strategy = [folded(group.scope.sampler), folded(f"+ {group.scope.pruner}") if group.scope.pruner != "none" else ""]
        if group.twins:
            cells = [f"= {group.same_sampler}", *[""] * (len(columns) + 1)]
        else:
            cells = [*(_figure(group, column) for column in columns), _trials(group), _runs(group)]
        texts = (
            "\n".join(filter(None, lines)) for lines in (names, *([[folded(group.variant)]] if has_variants else []), strategy)
        )
        table.add_row(*(Text(text) for text in (*texts, *cells)))
    return table


def _figure(group: Group, column: Metric) -> str:
    median, uncertainty = group.estimate(column.name).middle, group.clock_uncertainty
    if column.name.removeprefix("time.") in STEPS and median is not None and median < uncertainty:
        return f"<{seconds(uncertainty)}"
    cell = figure_cell(group, column)
    mark = "" if cell.text == FAILED else cell.mark
    return f"{mark}{cell.text}" + (f"\n{cell.mark}{cell.below}" if cell.below else "")


def _trials(group: Group) -> str:
    counts = group.counts
    failed = counts["failed"] + counts["timed_out"]
    return f"{counts['completed']}/{failed}/{counts['pruned']}" if group.executed else MISSING


def _runs(group: Group) -> str:
    if not group.executed and any(run.is_skipped for run in group.runs):
        return "skip"
    return f"{len(group.done)}/{len(group.runs)}" + (f"\n{group.failed} failed" if group.failed else "")


def facts(choice: Choice) -> list[str]:
    """Return what was run, in a few words each."""
    answers, results = choice.answers, choice.answers.results
    planned = [run for run in results.planned if run.skip_reason is None]
    rows = choice.settings[0].rows if choice.settings else ()
    lengths = [column.trial_seconds for row in rows for column in row.columns.values() if column.trial_seconds is not None]
    tasks = {scope.task for scope in answers.scopes if scope.task}
    at_most = "at most " if any(run.spec.experiment.objective.stop for run in planned) else ""
    trials = at_most + counted_range((run.spec.experiment.budget.trials for run in planned), "trial")
    rules = results.plan.analysis.get(RULES)
    tier = (
        f"claims tier {rules.get('tier')} of {rules.get('of')} (rules {rules.get('version')})"
        if isinstance(rules, Mapping)
        else ""
    )
    days = sorted(record.started_at[:10] for record in results.selected.values() if record.started_at)
    texts = [
        tier,
        listed(dict.fromkeys(training_name(run.spec.experiment.workload, answers.name) for run in planned)),
        counted(len({row.first.group.spec.adapter for row in rows if not row.is_floor}), "framework"),
        counted(len(tasks), "task") if tasks else "",
        counted(len({run.spec.seed for run in planned}), "seed"),
        trials + (f" of {duration_range(lengths)}" if trials and lengths else ""),
        counted_range((run.spec.experiment.workers.count for run in planned), "worker"),
        f"{answers.statuses.get('done', 0)} of {counted(len(planned), 'run')} done",
        *days[:1],
    ]
    return list(filter(None, texts))


def ending(choice: Choice, width: int | None = None) -> list[str]:
    """Return the lines, none wider than `width`, at most 80 columns where it can be broken, the table at most 88."""
    most = min(width, WIDTH) if width is not None else WIDTH
    has_choice = sum(not row.is_floor for setting in choice.settings[:1] for row in setting.rows) > 1
    has_lines = has_choice or len(choice.lines) > 1  # beyond that there is nothing to choose from
    below = [*choice.lines, *(_lengths(choice.lengths) if choice.lengths is not None else ())] if has_lines else []
    below += [*(() if has_lines else choice.lines), *choice.filters] if choice.filters else []
    if choice.deciding is not None:
        about = f", about {duration_text(choice.deciding.seconds)}" if choice.deciding.seconds is not None else ""
        below += [f"To decide{about}:", f"  {choice.deciding.command}"]
    if choice.best is not None:
        below.append(_best(choice, choice.best, MOST_PARAMETERS if has_choice else None))
    below += [f"! {text}" for text in choice.short_warnings[:MOST_WARNINGS]]
    more = len(choice.short_warnings) - MOST_WARNINGS
    below += [f"! and {more} more: {choice.report_command}"] if more > 0 else []
    above = table(choice, min(width, TABLE_WIDTH) if width is not None else TABLE_WIDTH)
    legend = []
    if len(above) > 3:  # of several frameworks: what the signs and ranges mean
        setting = choice.settings[0]
        ratios = [column.ratios.get(setting.reference or "") for row in setting.rows for column in row.columns.values()]
        judged = [ratio for ratio in ratios if ratio is not None]
        signs = "".join(
            f"; {sign} {words}"
            for outcome, (sign, words) in SIGNS.items()
            if outcome is not Outcome.NOT_JUDGED and any(ratio.outcome is outcome for ratio in judged)
        )
        over = f"x: job time over that of {setting.reference_name}, median of the"
        if any(len(row.columns) > 1 for row in setting.rows):
            legend.append(f"{over} tasks or variants (lowest to highest).")
        elif judged:
            ends = "its interval" if any(ratio.is_interval for ratio in judged) else "lowest to highest"
            legend.append(f"{over} seeds' ratios ({ends}){signs}.")
        legend.append("added: s/job above the baseline (base); ms/report: reports x ms. ~ estimated.")
    head = wrapped([f"{choice.name}: {', '.join(facts(choice))}"], most) if above else ()
    return [*head, *above, *wrapped(legend, most), *([""] if above else []), *wrapped(below, most)]


def table(choice: Choice, width: int) -> list[str]:
    """Return a row per framework and sampler, excluded ones left out, with as many columns as fit."""
    from rich.table import Table

    rows = [(row, setting) for setting in choice.settings for row in setting.rows if not row.excluded]
    if not rows:
        return []

    def drawn(columns: Sequence[tuple[str, Cell]]) -> Table:
        grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for heading, _ in columns:
            grid.add_column(heading, justify="left" if heading in ("framework", "sampler") else "right", no_wrap=True)
        for row, setting in rows:
            grid.add_row(*(cell(row, setting) for _, cell in columns))
        return grid

    return _fitted(list(_columns(choice, [row for row, _ in rows])), drawn, width)


def _lengths(lengths: LengthTable) -> Iterator[str]:
    """Yield the table of lengths with what stands above and below it."""
    widths = [max(map(len, cells)) for cells in zip(lengths.heads, *lengths.rows, strict=True)]
    yield lengths.caption
    for row in (lengths.heads, *lengths.rows):
        yield "  ".join(("", *(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))).rstrip()
    yield from (f"  {note}" for note in lengths.notes)


def _columns(choice: Choice, rows: Sequence[Row]) -> Iterator[tuple[str, Cell]]:
    """Yield heading and cell of each column, the most important first."""
    yield "framework", lambda row, _: row.name
    if len(choice.settings) > 1:
        yield "sampler", lambda _, setting: setting.name
    if all(len(row.columns) == 1 for row in rows):
        yield "job time, s\nmedian (min-max)", lambda row, _: _median(row.first.group, JOB_TIME, with_range=True)
    if len(rows) > 1:
        yield f"x {choice.settings[0].reference_name}", _ratio
    yield "added\ns/trial", lambda row, _: _added(column.added.per_trial for column in row.columns.values())
    yield "added\ns/job", _added_to_jobs
    yield "added\nms/report", _added_by_reports
    if any(map(_failed, rows)):
        yield "runs\nfailed", lambda row, _: _failed(row)
    if all(len(row.columns) == 1 for row in rows):
        arrow = f" {choice.best.arrow}" if choice.best is not None else ""
        head = f"test{arrow}\nscore" if choice.quality == QUALITY else f"valid-\nation{arrow}"
        yield head, lambda row, _: _median(row.first.group, choice.quality)
        yield "energy\nJ/trial", lambda row, _: _median(row.first.group, ENERGY)


def _fitted(columns: list[T], draw: Callable[[Sequence[T]], Table], width: int | None) -> list[str]:
    """Return the lines of a table without colours, with as many of its columns as fit; the others are taken away, last first."""
    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, width=WIDEST, color_system=None, force_terminal=False, highlight=False)
    while width is not None and len(columns) > LEAST_COLUMNS and console.measure(draw(columns)).maximum > width:
        columns.pop()
    console.print(draw(columns))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def _failed(row: Row) -> str:
    """Return how many of a row's runs failed: "" for none."""
    failed, tried = failures(row.columns.values())
    return f"{failed}/{tried}" if failed else ""


def _added_to_jobs(row: Row, _: Setting) -> str:
    """Return what a framework adds above the baseline, which is `base`; without one `own` and all that it takes itself."""
    if row.is_floor:
        return "base"
    all_added = [column.added for column in row.columns.values()]
    if all(added.baseline is None for added in all_added):
        amount = _added(added.own_per_job for added in all_added)
        return amount if amount == MISSING else f"own {amount}"
    return _added(added.per_job for added in all_added)


def _added_by_reports(row: Row, _: Setting) -> str:
    """Return the reports of a trial and what each adds: `10 x 3.2`; 0 where a trial makes none."""
    all_added = [column.added for column in row.columns.values()]
    numbers = sorted(added.reports for added in all_added if added.reports is not None)
    if not numbers or numbers[-1] == 0:
        return "0" if numbers else MISSING
    of_a_trial = " to ".join(dict.fromkeys(f"{number:.3g}" for number in (numbers[0], numbers[-1])))
    return f"{of_a_trial} x {_added((added.per_report for added in all_added), MILLISECONDS)}"


def _added(intervals: Iterable[Interval | None], unit: float = 1.0) -> str:
    """Return what a framework adds, in s by `unit`; over several columns the least and the most."""
    amounts = sorted(unit * max(0.0, added.estimate) for added in intervals if added is not None)
    if not amounts:
        return MISSING
    return figure(amounts[0]) if len(amounts) == 1 else f"{figure(amounts[0])} to {figure(amounts[-1])}"


def _ratio(row: Row, setting: Setting) -> str:
    """Return the ratio to the reference of its setting; over several columns the median, the least and the greatest one."""
    if row.label == setting.reference:
        return "1"
    ratios = [ratio for column in row.columns.values() if (ratio := column.ratios.get(setting.reference or "")) is not None]
    if not ratios:
        return MISSING
    if len(row.columns) == 1:
        sign = SIGNS[ratios[0].outcome][0] if ratios[0].outcome is not Outcome.NOT_JUDGED else ""
        return f"{_times(ratios[0].estimate, ratios[0].low, ratios[0].high)}{sign}"
    estimates = sorted(ratio.estimate for ratio in ratios)
    return f"{_times(middle(estimates), estimates[0], estimates[-1])} over {len(estimates)}"


def _times(estimate: float, low: float, high: float) -> str:
    """Return `2.9 (1.5-4.8)`; without its range where that is of one value."""
    return times(estimate) + (f" ({times(low)}-{times(high)})" if low != high and math.isfinite(estimate) else "")


def _median(group: Group, name: str, *, with_range: bool = False) -> str:
    """Return the median of a metric, marked where it is estimated: `4.12 (3.98-4.31)`."""
    cell = figure_cell(group, metric(name))
    mark = "" if cell.text == FAILED else cell.mark
    return f"{mark}{cell.text}" + (f" ({cell.below.replace('–', '-')})" if with_range and cell.below else "")


def _best(choice: Choice, best: BestConfiguration, most: int | None) -> str:
    """Return the best score, and the first `most` parameters of its configuration; None: all."""
    name = next((row.name for setting in choice.settings for row in setting.rows if row.label == best.label), best.label)
    values = {key: f"{value:.3g}" if isinstance(value, float) else value for key, value in best.configuration.items()}
    parameters = [f"{key}={value}" for key, value in values.items()]
    rest = ", ..." if most is not None and len(parameters) > most else ""
    single = "Best single trial (no ranking)" if most is not None else "Best trial"
    return f"{single}: {best.metric} {score(best.value)} with {name}: {', '.join(parameters[:most])}{rest}"


def report_lines(choice: Choice, width: int | None) -> Iterator[str]:
    """Yield the choice, the figures over what the matrix varies, the verdicts and what cannot be concluded.

    `width`: columns of the terminal; None: there is none. Of what a request leaves nothing of only the refusal is told.
    """
    yield from ending(choice, width)
    if not choice.refusal:
        yield ""
        for setting in choice.settings:
            names = {row.label: row.marked for row in setting.rows}
            for curve in setting.curves:
                yield f"{FIGURES[curve.metric][0]} ({', '.join(filter(None, ('sampler ' + setting.name, curve.beside)))}):"
                for label, points in curve.lines.items():
                    yield f"  {names.get(label, label)}: {'; '.join(_point_text(curve, point) for point in points)}"
                if curve.over == "release":
                    yield f"  {SMALLEST_STEP}: {smallest_step_text(curve)}"
        yield from _answer_lines(choice.answers, choice.warnings)


def _point_text(curve: ScalingCurve, point: Point) -> str:
    text = f"{x_text(curve, point)} {curve_amount(curve, point.value.estimate)}"
    if step := shown_steps(curve).get(point.scope):
        text += f" (step {step})"
    if point.predicted is None:
        return text
    return f"{text}, {curve_amount(curve, point.predicted)} predicted{' (extrapolated)' if point.is_extrapolated else ''}"


def _answer_lines(answers: Answers, warnings: Iterable[ResultsWarning]) -> Iterator[str]:
    """Yield the verdicts in words, and what cannot be concluded."""
    total = sum(answers.statuses.values())
    came = ", ".join(f"{count} {status}" for status, count in sorted(answers.statuses.items()))
    yield f"{answers.name}: {counted(total, 'planned run')}: {came}"
    yield ""
    for heading, grouped in groupby(claims(answers), key=itemgetter(0)):
        texts = [text for _, text in grouped]
        if len(texts) == 1 or not heading:  # a claim that is alone keeps its heading in its line
            yield from (sentence(heading, text) for text in texts)
        else:
            yield f"{heading}:"
            yield from (f"  - {text}" for text in texts)
    yield ""
    yield "What cannot be concluded:"
    yield from (f"  - {warning.long}" for warning in warnings)
    percent = 100 * answers.confidence
    family = answers.family_size
    yield (
        f"Intervals of medians: {percent:g} %. Verdicts: paired by seed, {percent:g} % over a family of {family} pairs per "
        f"question and scope (Bonferroni). How to read them: {command('explain', 'docs/verdicts.md')}"
    )
