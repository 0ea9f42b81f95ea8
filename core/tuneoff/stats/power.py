"""What a number of seeds can find."""

from __future__ import annotations


def detectable(n: int, alpha: float, power: float = 0.8) -> float:
    raise NotImplementedError


def seeds_needed(effect_in_sd: float, alpha: float, power: float = 0.8) -> int | None:
    raise NotImplementedError
