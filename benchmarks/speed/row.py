"""One row of the table: a figure of tuneoff (A), what it is held against (B), and the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from benchmarks.speed.statistics import PairedEstimate

RATIO = "x"  # the unit of a ratio A / B


@dataclass(frozen=True, slots=True)
class SpeedTarget:
    """The bound that a row's figure must keep, in the row's unit."""

    relation: Literal["<=", "<", ">="]
    value: float

    def is_met_by(self, figure: float) -> bool:
        if self.relation == ">=":
            return figure >= self.value
        return figure < self.value or (self.relation == "<=" and figure == self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRow:
    """A measured figure. With the unit "x" it is the ratio A / B, else it is A's own figure (or A - B) in that unit."""

    name: str
    a: str
    b: str = ""
    unit: str = RATIO
    result: PairedEstimate | None = None
    target: SpeedTarget | None = None  # None: for information
    control: PairedEstimate | None = None  # the same ratio for B against B: what is noise
    figures: Mapping[str, float] = field(default_factory=dict)  # absolute medians, with their unit in the name
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)
    note: str = ""
    skipped: str = ""  # why there is no figure

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without a figure or a target."""
        if self.result is None or self.target is None:
            return None
        return self.target.is_met_by(self.result.value)

    @property
    def verdict(self) -> str:
        """Whether the target is met, else by how much it is missed; and whether the interval leaves that open."""
        if self.result is None:
            return f"skipped: {self.skipped}" if self.skipped else "no figure"
        if self.target is None:
            return "for information"
        ends = [end for end in (self.result.low, self.result.high) if end is not None]
        is_open = any(self.target.is_met_by(end) is not self.is_met for end in ends)
        if self.is_met:
            return "met, but its interval is not" if is_open else "met"
        missed = abs(self.result.value - self.target.value) / abs(self.target.value)
        return f"missed by {missed:.1%}" + (", but its interval meets it" if is_open else "")

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values, with its verdict."""
        return {**asdict(self), "is_met": self.is_met, "verdict": self.verdict}


def skipped(name: str, a: str, reason: str, b: str = "", target: SpeedTarget | None = None) -> SpeedRow:
    """Return a row that says why it has no figure."""
    return SpeedRow(name=name, a=a, b=b, target=target, skipped=reason)
