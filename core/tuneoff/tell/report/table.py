"""The comparison's table, as plain text that fits the terminal."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuneoff.base.format import MISSING, folded, number, score, seconds, wrapped
from tuneoff.experiment.names import platform_text
from tuneoff.judge.estimates import Spread
from tuneoff.judge.notes import notes
from tuneoff.judge.summary import SummaryRow

if TYPE_CHECKING:
    from rich.table import Table

WIDEST = 1000  # columns
FAILED = "failed"  # in place of a median that failed runs reach: they are worse than any that is done

# the parts of the job completion time by the heading of their column; the collection of metrics is in none
PARTS = {
    "deploy": "deploy",
    "setup": "setup",
    "trials": "trial",
    "collect": "result_collection",
    "test": "test",
    "undeploy": "undeploy",
}
THREE = {"before": "before", "trials": "trial", "after": "after"}


def cell(spread: Spread | None, write: Callable[[float], str], *, stacked: bool = False, mark: str = "") -> str:
    """Return the median and, below it, lowest–highest; `stacked`: those on two lines; `mark`: before both."""
    median = median_cell(spread, write, mark=mark)
    if spread is None or (spread.n == 1 and not spread.failed):
        return median
    low, high = write(spread.low), write(spread.high)
    end = "\n" if stacked else ""
    return f"{median}\n{mark}{low}" if spread.n == 1 else f"{median}\n{mark}{low}–{end}{high}"


def median_cell(spread: Spread | None, write: Callable[[float], str], *, mark: str = "") -> str:
    """Return the median alone; where failed runs reach it, that."""
    if spread is None:
        return MISSING
    return FAILED if math.isinf(spread.median) else f"{mark}{write(spread.median)}"


@dataclass(frozen=True, slots=True)
class Layout:
    """How much a table shows side by side. `stacked`: ranges take two lines. `one_column`: the parts share one."""

    parts: dict[str, str]
    stacked: bool = False
    one_column: bool = False


LAYOUTS = (  # the widest first: 125, 111, 89, 77 columns for short names
    Layout(PARTS),
    Layout(PARTS, stacked=True),
    Layout(THREE, stacked=True),
    Layout(THREE, stacked=True, one_column=True),
)


def render(rows: Sequence[SummaryRow], width: int | None = None) -> str:
    """Return the table and its notes as text without colours or escape codes.

    `width`: columns of the terminal; None: no terminal, as wide as it comes. The table has a column per part of the job
    completion time where they fit, else before, trials, after. It is never cut: at worst it is wider than the terminal.
    """
    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, width=WIDEST, color_system=None, force_terminal=False, highlight=False)
    for layout in LAYOUTS:
        table = summary_table(rows, layout)
        if width is None or console.measure(table).maximum <= width:
            break
    console.print(table)
    lines = [line.rstrip() for line in (*text.getvalue().splitlines(), *wrapped(notes(rows), width))]
    return "\n".join(lines) + "\n"


def summary_table(rows: Sequence[SummaryRow], layout: Layout = LAYOUTS[0]) -> Table:
    """Return the table: medians, lowest–highest of the runs that are done below them; JCT and its parts as medians alone."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    metrics = {row.metric for row in rows}
    metric = metrics.pop() if len(metrics) == 1 else "objective"
    name = metric.removeprefix("validation_").removeprefix("val_")
    has_variants = any(row.variant for row in rows)
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for heading in ("adapter", *(["variant"] if has_variants else []), "sampler"):
        table.add_column(heading, no_wrap=True)
    for heading in (
        f"test\n{name}",
        f"best valid.\n{name}" if not layout.stacked else f"best\nvalid.\n{name}",
        "JCT\nw/o\ntest\ns",
        "JCT\ns",
        *_part_headings(layout),
        "overhead\nms/trial",
        "trials\ndone/\nfailed/\npruned",
        "runs\ndone/\nplan",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        figures = _figures(row, layout)
        cells = (adapter_cell(row), *([folded(row.variant)] if has_variants else []), strategy_cell(row), *figures)
        table.add_row(*(Text(text) for text in cells))
    return table


def adapter_cell(row: SummaryRow) -> str:
    """Return the adapter's name, with its platform below it where it has another one."""
    has_platform = row.platform == "local" or f"@{platform_text(row.platform, row.emulated)}" in row.label
    return folded(row.label) + ("" if has_platform else f"\n{platform_text(row.platform, row.emulated)}")


def strategy_cell(row: SummaryRow) -> str:
    """Return the sampler and, below it, the pruner."""
    return folded(row.sampler) + (f"\n{folded(f'+ {row.pruner}')}" if row.pruner != "none" else "")


def _figures(row: SummaryRow, layout: Layout) -> list[str]:
    parts = _parts(row, layout)
    if row.same_as is not None:
        return [f"= {row.same_as}", *[""] * (len(parts) + 6)]
    return [
        cell(row.test, score, stacked=layout.stacked),
        cell(row.validation, score, stacked=layout.stacked),
        cell(row.jct_without_test, seconds, stacked=layout.stacked),
        median_cell(row.jct, seconds),
        *parts,
        cell(row.overhead_per_trial, number, stacked=layout.stacked),
        f"{row.trials_completed}/{row.trials_failed}/{row.trials_pruned}" if row.statuses else MISSING,
        _runs(row),
    ]


def _runs(row: SummaryRow) -> str:
    if row.skips and not row.statuses:
        return "skip"
    return f"{row.runs_done}/{row.runs_planned}" + (f"\n{row.runs_failed} failed" if row.runs_failed else "")


def _part_headings(layout: Layout) -> list[str]:
    return ["\n+".join(layout.parts) + "\ns"] if layout.one_column else [f"{heading}\ns" for heading in layout.parts]


def _parts(row: SummaryRow, layout: Layout) -> list[str]:
    texts = [_part(row, part) for part in layout.parts.values()]
    if not layout.one_column:
        return texts
    return [MISSING if set(texts) == {MISSING} else "\n+".join(texts)]


def _part(row: SummaryRow, part: str) -> str:
    spread = row.parts.get(part)
    if spread is not None and spread.median < row.clock_uncertainty:
        return f"<{seconds(row.clock_uncertainty)}"
    return median_cell(spread, seconds)
