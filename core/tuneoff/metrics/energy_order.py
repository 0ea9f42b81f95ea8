"""Which of two uses took less energy, said only where it holds for every plausible server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LEAST_RATIO = 0.14  # watts per reserved core over joules per CPU second: 5 and 95 % quantiles over servers
GREATEST_RATIO = 0.71


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
    *,
    least_ratio: float = LEAST_RATIO,
    greatest_ratio: float = GREATEST_RATIO,
) -> EnergyOrder:
    """Return the order of two modelled energies E = alpha · (CPU seconds + r · reserved core seconds) for all r of a range.

    E is linear in r, so what holds at both ends holds in between.

    Raises:
        ValueError: a use is negative or no number, or the range is empty.
    """
    uses = (cpu_seconds_a, core_seconds_a, cpu_seconds_b, core_seconds_b)
    if not all(0 <= use < float("inf") for use in uses):
        raise ValueError(f"uses must be finite and at least 0, but got {uses}")
    if not 0 <= least_ratio <= greatest_ratio:
        raise ValueError(f"`0 <= least_ratio <= greatest_ratio` must hold, but got {least_ratio=}, {greatest_ratio=}")
    ends = [
        (cpu_seconds_a + ratio * core_seconds_a, cpu_seconds_b + ratio * core_seconds_b)
        for ratio in (least_ratio, greatest_ratio)
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
