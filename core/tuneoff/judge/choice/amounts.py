"""Ratios, times and lengths in words."""

from __future__ import annotations

import math

from tuneoff.base.format import times_text, two_digits
from tuneoff.judge.choice.choice import Length, Ratio

MINUTE, HOUR = 60.0, 3600.0


def ratio_text(ratio: Ratio) -> str:
    """Return `2.9x (1.5 to 4.8)`; without its range where that is of one seed."""
    return times_text(ratio.estimate, ratio.low, ratio.high)


def length_text(length: Length) -> str:
    """Return the length of a trial: `8 s`, `8 s (extrapolated)`."""
    return duration_text(length.seconds) + (" (extrapolated)" if length.is_extrapolated else "")


def duration_text(seconds: float) -> str:
    """Return a time with two digits, in the unit that people read: `0.62 s`, `8.1 s`, `31 s`, `12 min`, `3.5 h`."""
    for unit, size, most in (("s", 1.0, 2 * MINUTE), ("min", MINUTE, 2 * HOUR), ("h", HOUR, math.inf)):
        if seconds < most:
            return f"{two_digits(seconds / size).removesuffix('.0')} {unit}"
    return "never"


def share_text(share: float) -> str:
    """Return a share in percent with two digits: `0.62 %`, `31 %`."""
    return f"{two_digits(100 * share)} %"
