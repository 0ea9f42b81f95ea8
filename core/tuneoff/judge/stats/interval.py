"""An estimate with its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate of `n` values and its two-sided interval of `confidence`; a bound that nothing holds is ±inf.

    `method` says in a few words which estimate and which interval it is: "median, sign test".
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    method: str

    def __post_init__(self) -> None:
        if not self.low <= self.estimate <= self.high:
            raise ValueError(f"`low <= estimate <= high` must hold, but got {self.low}, {self.estimate}, {self.high}")

    def over(self, divisor: float) -> Interval:
        """Return it in another unit: everything divided by a number above 0."""
        return replace(self, estimate=self.estimate / divisor, low=self.low / divisor, high=self.high / divisor)
