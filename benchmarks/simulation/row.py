"""One simulated cell, and the checkers that say whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRow:
    """A share of the repetitions, and where it must lie; `required` is None where it is shown alone.

    `upper`: what must lie there in its place, the upper end of the share's interval.
    """

    what: str
    distribution: str
    n: int
    share: float
    required: tuple[float, float] | None = None
    upper: float | None = None

    @property
    def holds(self) -> bool:
        value = self.share if self.upper is None else self.upper
        return self.required is None or self.required[0] <= value <= self.required[1]


def coverage_range(is_grid: bool) -> tuple[float, float]:
    """Return where the coverage of a 95 % interval must lie: on a grid a closed interval may cover more."""
    return (0.92, 1.0) if is_grid else (0.92, 0.97)


FAMILY_WISE = (0.0, 0.05)
POWER = (0.8, 1.0)


def table(rows: Sequence[SimulationRow]) -> str:
    """Return a markdown table: one line per distribution and what was simulated, one column per n."""
    sizes = sorted({row.n for row in rows})
    lines = ["| | | " + " | ".join(f"n = {n}" for n in sizes) + " | must be |", "|---" * (len(sizes) + 3) + "|"]
    cells = {(row.what, row.distribution, row.n): row for row in rows}
    for what, distribution in dict.fromkeys((row.what, row.distribution) for row in rows):
        rows_of_size = [cells.get((what, distribution, n)) for n in sizes]
        required = next((row.required for row in rows_of_size if row is not None and row.required is not None), None)
        texts = ["" if row is None else f"{100 * row.share:.2f}{'' if row.holds else ' (!)'}" for row in rows_of_size]
        lines.append(f"| {what} | {distribution} | {' | '.join(texts)} | {_range(required)} |")
    return "\n".join(lines)


def _range(required: tuple[float, float] | None) -> str:
    if required is None:
        return ""
    low, high = (f"{100 * bound:.3g}" for bound in required)
    return f"at most {high}" if low == "0" else f"at least {low}" if high == "100" else f"{low} to {high}"
