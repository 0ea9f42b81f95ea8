"""An interval as a small drawing beside its numbers: dot and line over the band of differences that do not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

from tuneoff.answers.model import Verdict
from tuneoff.stats.interval import Interval

WIDTH, HEIGHT, EDGE = 180, 22, 8
LEAST_REACH = 1.5  # margins: the band never fills the whole drawing


def reach(verdicts: Iterable[Verdict]) -> float:
    """Return how far from zero the drawings of a table go, the same for all of them, so that rows can be compared."""
    found = [0.0]
    for verdict in verdicts:
        found.append(LEAST_REACH * (verdict.question.margin or 0.0))
        for interval in (verdict.interval, verdict.noise_floor):
            if interval is not None:
                found += [abs(value) for value in (interval.low, interval.estimate, interval.high) if math.isfinite(value)]
    return max(found) * 1.05 or 1.0


def strip(verdict: Verdict, limit: float, css: str) -> Markup:
    """Return the drawing of a verdict's interval, from −`limit` to +`limit`; the numbers beside it say the same."""
    parts = []
    middle = HEIGHT / 2
    margin = verdict.question.margin
    if margin:
        left, right = _x(-margin, limit), _x(margin, limit)
        parts.append(f'<rect class="band" x="{left}" y="1" width="{right - left:.1f}" height="{HEIGHT - 2}"/>')
    floor = verdict.noise_floor
    if floor is not None:
        left, right = _x(floor.low, limit), _x(floor.high, limit)
        parts.append(f'<rect class="floor" x="{left}" y="{HEIGHT - 5}" width="{max(right - left, 1):.1f}" height="3"/>')
    zero = _x(0.0, limit)
    parts.append(f'<path class="zero" d="M{zero} 0V{HEIGHT}"/>')
    if verdict.interval is not None:
        parts += _interval(verdict.interval, limit, middle, css)
    drawn = "".join(parts)
    return Markup(f'<svg class="strip" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true" focusable="false">{drawn}</svg>')


def _interval(interval: Interval, limit: float, middle: float, css: str) -> list[str]:
    low, high, dot = (_x(value, limit) for value in (interval.low, interval.high, interval.estimate))
    parts = [f'<path class="line {css}" d="M{low} {middle}H{high}"/>']
    for value, x, inward in ((interval.low, low, 4), (interval.high, high, -4)):
        if math.isinf(value):  # nothing holds it: an arrow instead of an end
            parts.append(f'<path class="line {css}" d="M{x + inward} {middle - 4}L{x} {middle}L{x + inward} {middle + 4}"/>')
        else:
            parts.append(f'<path class="line {css}" d="M{x} {middle - 4}V{middle + 4}"/>')
    if math.isfinite(interval.estimate):
        parts.append(f'<circle class="dot {css}" cx="{dot}" cy="{middle}" r="3.5"/>')
    return parts


def _x(value: float, limit: float) -> float:
    """Return the place of a value; what is further out stands at the edge."""
    share = max(-1.0, min(1.0, value / limit))
    return round(WIDTH / 2 + share * (WIDTH / 2 - EDGE), 1)
