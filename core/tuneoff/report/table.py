"""The comparison's table, as plain text that fits a terminal of 100 columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tuneoff.report.summary import Spread, SummaryRow

if TYPE_CHECKING:
    from rich.table import Table

MISSING = "–"


def render(rows: Sequence[SummaryRow], width: int = 100) -> str:
    """Return the table and its notes as text without colours or escape codes."""
    from rich.console import Console

    text = io.StringIO()
    console = Console(file=text, width=max(width, 100), color_system=None, force_terminal=False, highlight=False)
    console.print(summary_table(rows))
    for note in notes(rows):
        console.print(note, markup=False, soft_wrap=True)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join(lines) + "\n"


def summary_table(rows: Sequence[SummaryRow]) -> Table:
    """Return the table: medians over the runs that are done, least..greatest below them."""
    from rich import box
    from rich.table import Table

    metrics = {row.metric for row in rows}
    metric = metrics.pop() if len(metrics) == 1 else "objective"
    name = metric.removeprefix("validation_").removeprefix("val_")
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("adapter", overflow="fold")
    table.add_column("sampler", overflow="fold")
    headings = (
        f"test\n{name}",
        f"best val.\n{name}",
        "JCT\ns",
        "deploy+setup+trial\n+collect+test\n+metrics+undeploy, s",
        "overhead\n/trial, ms",
        "trials done\n/failed\n/pruned",
        "runs done\n/planned",
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        strategy = [row.sampler, *([f"+ {row.pruner}"] if row.pruner != "none" else [])]
        strategy += [f"{key}={value}" for key, value in row.variant.items() if key not in ("sampler", "pruner", "seed")]
        trials = f"{row.trials_completed}/{row.trials_failed}/{row.trials_pruned}"
        table.add_row(
            row.label if row.platform == "local" else f"{row.label}\n{row.platform}",
            "\n".join(strategy),
            _cell(row.test, "score"),
            _cell(row.validation, "score"),
            _cell(row.jct, "seconds"),
            _parts(row),
            _cell(row.overhead_per_trial, "milliseconds"),
            trials,
            "skipped" if len(row.skip_reasons) and not row.statuses else f"{row.runs_done}/{row.runs_planned}",
        )
    return table


def notes(rows: Sequence[SummaryRow]) -> list[str]:
    """Return what the table cannot hold: the meaning of its figures, skips with their reasons, runs that are not done."""
    lines = []
    if any(row.runs_done > 1 for row in rows):
        lines.append("Median over seeds, least..greatest below; only runs that are done count.")
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


def _cell(spread: Spread | None, kind: str) -> str:
    if spread is None:
        return MISSING
    values = (spread.median, spread.low, spread.high)
    if kind == "score":
        median, low, high = (f"{value:.4f}" if abs(value) < 1000 else f"{value:.4g}" for value in values)
    else:
        median, low, high = (_number(value / 1000 if kind == "seconds" else value) for value in values)
    return median if spread.n == 1 else f"{median}\n{low}..{high}"


def _parts(row: SummaryRow) -> str:
    texts = []
    for spread in row.parts.values():
        if spread is None:
            texts.append(MISSING)
        elif spread.median < row.clock_uncertainty:
            texts.append(f"<{_number(row.clock_uncertainty / 1000)}")
        else:
            texts.append(_number(spread.median / 1000))
    if all(text == MISSING for text in texts):
        return MISSING
    return "+".join(texts[:4]) + "\n+" + "+".join(texts[4:])


def _number(value: float) -> str:
    """Return about three digits, without an exponent and without false precision."""
    size = abs(value)
    if size == 0:
        return "0"
    digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{value:.{digits}f}"
