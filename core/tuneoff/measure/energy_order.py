"""The plausible weights of a model of energy: which of two used less is said only where it holds for all, of stated servers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
