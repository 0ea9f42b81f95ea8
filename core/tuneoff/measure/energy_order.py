"""Which of two uses took less energy, said only where it holds for every plausible weight of a model: those of stated servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tuneoff.measure.power.cpu_table import default_ratio
from tuneoff.record.run_record import RunRecord

RATIO_LOW, RATIO_HIGH = "energy.weight_ratio_low", "energy.weight_ratio_high"  # metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightRange:
    """The plausible range of r, watts per reserved core over joules per CPU second: 5 to 95 % quantile over `servers`."""

    low: float
    high: float
    servers: str

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"`0 <= low <= high` must hold, but got {self.low} and {self.high}")

    @property
    def text(self) -> str:
        """In words: `0.19 to 0.937, 287 servers published since 2023`."""
        return f"{self.low:.3g} to {self.high:.3g}, {self.servers}"


def weight_range(records: Iterable[RunRecord]) -> WeightRange:
    """Return the range that holds for all of these runs: the widest; the table's default where a record does not tell."""
    return widest(map(_weight_range, records))


def widest(ranges: Iterable[WeightRange]) -> WeightRange:
    """Return the range that holds all of these, of all their servers; of none the default."""
    found = list(dict.fromkeys(ranges)) or [_default()]
    return WeightRange(
        low=min(one.low for one in found),
        high=max(one.high for one in found),
        servers=" and ".join(dict.fromkeys(one.servers for one in found)),
    )


def _weight_range(record: RunRecord) -> WeightRange:
    low, high = (record.metrics.get(name) for name in (RATIO_LOW, RATIO_HIGH))
    if low is None or high is None or low.value is None or high.value is None:
        return _default()
    return WeightRange(low=low.value, high=high.value, servers=low.source)


def _default() -> WeightRange:
    (low, high), servers = default_ratio()
    return WeightRange(low=low, high=high, servers=servers)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyOrder:
    """Which of `a` and `b` used less energy; `less` is None where it depends on the server, or they used the same.

    `low` and `high` are E_a / E_b at the ends of the range of ratios (None: E_b is 0), `even_at` the ratio in the range at
    which both used the same.
    """

    less: Literal["a", "b"] | None
    low: float | None
    high: float | None
    even_at: float | None = None


def energy_order(
    cpu_seconds_a: float,
    core_seconds_a: float,
    cpu_seconds_b: float,
    core_seconds_b: float,
    weights: WeightRange,
) -> EnergyOrder:
    """Return the order of two modelled energies E = alpha · (CPU seconds + r · reserved core seconds) for all r of a range.

    E is linear in r, so what holds at both ends holds in between.

    Raises:
        ValueError: a use is negative or no number.
    """
    uses = (cpu_seconds_a, core_seconds_a, cpu_seconds_b, core_seconds_b)
    if not all(0 <= use < float("inf") for use in uses):
        raise ValueError(f"uses must be finite and at least 0, but got {uses}")
    ends = [
        (cpu_seconds_a + ratio * core_seconds_a, cpu_seconds_b + ratio * core_seconds_b) for ratio in (weights.low, weights.high)
    ]
    less: Literal["a", "b"] | None = None
    if all(a < b for a, b in ends):
        less = "a"
    elif all(a > b for a, b in ends):
        less = "b"
    quotients = [a / b if b > 0 else None for a, b in ends]
    cores = core_seconds_a - core_seconds_b
    even_at = (cpu_seconds_b - cpu_seconds_a) / cores if less is None and cores else None
    return EnergyOrder(less=less, low=quotients[0], high=quotients[1], even_at=even_at)
