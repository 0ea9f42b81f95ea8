"""The comparison's table, as plain text that fits a terminal of 100 columns."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tuneoff.experiment.identity import canonical_json
from tuneoff.report.summary import Spread, SummaryRow

if TYPE_CHECKING:
    from rich.table import Table

NARROW, WIDEST = 100, 1000  # columns
FOLD = 14  # longest line of an adapter's or sampler's cell
MISSING = "–"


def render(rows: Sequence[SummaryRow], width: int = NARROW) -> str:
    """Return the table and its notes as text without colours or escape codes; it is never cut, at worst it is wider."""
    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, width=WIDEST, color_system=None, force_terminal=False, highlight=False)
    table = summary_table(rows)
    console.width = max(width, NARROW, console.measure(table).maximum)
    console.print(table)
    for note in notes(rows):
        console.print(note, markup=False, soft_wrap=True)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join(lines) + "\n"


def summary_table(rows: Sequence[SummaryRow]) -> Table:
    """Return the table: medians over the runs that are done, least–greatest below them."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    metrics = {row.metric for row in rows}
    metric = metrics.pop() if len(metrics) == 1 else "objective"
    name = metric.removeprefix("validation_").removeprefix("val_")
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("adapter", no_wrap=True)
    table.add_column("sampler", no_wrap=True)
    headings = (
        f"test\n{name}",
        f"best valid.\n{name}",
        "JCT,\ns",
        "deploy+setup\n+trial+collect\n+test+metrics\n+undeploy, s",
        "overhead\n/trial, ms",
        "trials\ndone/\nfailed/\npruned",
        "runs\ndone/\nplan",
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        strategy = [row.sampler, *([f"+ {row.pruner}"] if row.pruner != "none" else [])]
        strategy += [
            f"{key.rpartition('.')[2]}={_plain(value)}" for key, value in row.variant.items() if key not in ("sampler", "pruner")
        ]
        label = [row.label, *([row.platform] if row.platform != "local" else [])]
        cells = (
            _folded(label),
            _folded(strategy),
            _cell(row.test, _score, _short_score),
            _cell(row.validation, _score, _short_score),
            _cell(row.jct, _seconds),
            _parts(row),
            _cell(row.overhead_per_trial, _number),
            f"{row.trials_completed}/{row.trials_failed}/{row.trials_pruned}",
            "skip" if row.skip_reasons and not row.statuses else f"{row.runs_done}/{row.runs_planned}",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def notes(rows: Sequence[SummaryRow]) -> list[str]:
    """Return what the table cannot hold: the meaning of its figures, skips with their reasons, runs that are not done."""
    lines = []
    if any(row.runs_done > 1 for row in rows):
        lines.append("Median over seeds, least–greatest below; only runs that are done count.")
    uncertainty = max((row.clock_uncertainty for row in rows), default=0.0)
    if uncertainty:
        lines.append(f"Clocks of the hosts agree within {_number(uncertainty)} ms.")
    for row in rows:
        who = f"{row.label} {row.sampler}" + (f" + {row.pruner}" if row.pruner != "none" else "")
        lines += [f"{who}: skipped: {reason}" for reason in row.skip_reasons]
        lines += [f"{who}: {reason}" for reason in row.reasons]
        if row.trials_cancelled:
            lines.append(f"{who}: {row.trials_cancelled} trials were cancelled")
    return list(dict.fromkeys(lines))


def _cell(spread: Spread | None, write: Callable[[float], str], write_range: Callable[[float], str] | None = None) -> str:
    if spread is None:
        return MISSING
    median, low, high = write(spread.median), *map(write_range or write, (spread.low, spread.high))
    return median if spread.n == 1 else f"{median}\n{low}–{high}"


def _parts(row: SummaryRow) -> str:
    texts = []
    for spread in row.parts.values():
        if spread is None:
            texts.append(MISSING)
        elif spread.median < row.clock_uncertainty:
            texts.append(f"<{_seconds(row.clock_uncertainty)}")
        else:
            texts.append(_seconds(spread.median))
    if all(text == MISSING for text in texts):
        return MISSING
    return "\n+".join(("+".join(texts[:2]), "+".join(texts[2:4]), "+".join(texts[4:])))


def _folded(lines: Sequence[str]) -> str:
    return "\n".join(part for line in lines for part in textwrap.wrap(line, FOLD) or [""])


def _plain(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _score(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.5g}"


def _short_score(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.4g}"


def _seconds(milliseconds: float) -> str:
    return _number(milliseconds / 1000)


def _number(value: float) -> str:
    """Return about three digits, without an exponent and without false precision."""
    size = abs(value)
    if size == 0:
        return "0"
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{digits}f}"
