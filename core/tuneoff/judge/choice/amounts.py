"""Ratios, times and lengths in words."""

from __future__ import annotations

from tuneoff.base.format import duration_text, times_text, two_digits
from tuneoff.judge.choice.choice import Length, Ratio


def ratio_text(ratio: Ratio) -> str:
    """Return `2.9x (1.5 to 4.8)`; without its range where that is of one seed."""
    return times_text(ratio.estimate, ratio.low, ratio.high)


def length_text(length: Length) -> str:
    """Return the length of a trial: `8 s`, `8 s (extrapolated)`."""
    return duration_text(length.seconds) + (" (extrapolated)" if length.is_extrapolated else "")


def share_text(share: float) -> str:
    """Return a share in percent with two digits: `0.62 %`, `31 %`."""
    return f"{two_digits(100 * share)} %"
