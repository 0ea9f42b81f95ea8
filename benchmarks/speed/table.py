"""The table of rows, as plain text."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.speed.row import RATIO, SpeedRow
from benchmarks.speed.statistics import PairedEstimate

HEADER = (
    "A figure with the unit x is a ratio A / B: how many times B's figure A's is, as the median over interleaved pairs.\n"
    "In brackets: its 95 % interval (order statistics; -: too few). Control: the same ratio of B against itself, which is noise."
)
_TITLES = ("row", "figure", "95 % interval", "control", "target", "verdict")


def render(rows: Iterable[SpeedRow]) -> str:
    """Return the table: one line per row, and under it what A and B are and the absolute figures."""
    rows = list(rows)
    cells = [_TITLES, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_TITLES))]
    lines = [HEADER, "", _line(_TITLES, widths), "  ".join("-" * width for width in widths)]
    for row, line in zip(rows, cells[1:], strict=True):
        lines.append(_line(line, widths))
        lines.extend(f"    {text}" for text in details(row))
    return "\n".join(lines)


def details(row: SpeedRow) -> list[str]:
    """Return what stands under a row."""
    lines = [f"A: {row.a}"]
    if row.b:
        lines.append(f"B: {row.b}")
    if row.figures:
        lines.append("; ".join(f"{name} {number(value)}" for name, value in row.figures.items()))
    if row.note:
        lines.append(row.note)
    return lines


def number(value: float) -> str:
    """Return a number with four significant digits, without an exponent."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-3 else f"{value:.6f}"


def _cells(row: SpeedRow) -> tuple[str, ...]:
    target = f"{row.target.relation} {number(row.target.value)}" if row.target is not None else ""
    if row.result is None:
        return (row.name, "", "", "", target, row.verdict)
    figure = f"{number(row.result.value)} {row.unit}"
    control = f"{number(row.control.value)} {_interval(row.control)}" if row.control is not None else ""
    return (row.name, figure, _interval(row.result), control, target + _unit(row, target), row.verdict)


def _unit(row: SpeedRow, target: str) -> str:
    return f" {row.unit}" if target and row.unit != RATIO else ""


def _interval(result: PairedEstimate) -> str:
    if result.low is None or result.high is None:
        return f"[-] n={result.count}"
    return f"[{number(result.low)}, {number(result.high)}] n={result.count}"


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
