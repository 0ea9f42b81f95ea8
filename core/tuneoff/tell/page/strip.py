"""A pair's interval as a small drawing beside its numbers: dot and line over the band of differences that do not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from markupsafe import Markup

from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.stats.interval import Interval

WIDTH, HEIGHT, EDGE = 120, 20, 6
MIDDLE = HEIGHT / 2
LEAST_REACH = 1.5  # margins: the band never fills the whole drawing


def reach(verdicts: Iterable[Verdict]) -> float:
    """Return how far from zero the drawings of a table go, the same for all of them, so that rows can be compared."""
    found = [0.0]
    for verdict in verdicts:
        found.append(LEAST_REACH * (verdict.question.margin or 0.0))
        for interval in (verdict.interval, verdict.noise_floor):
            if interval is not None:
                found += [interval.low, interval.estimate, interval.high]
        if verdict.outcome is Outcome.NOT_JUDGED:
            found += [one.difference for one in verdict.differences if one.difference is not None]
    return max(abs(value) for value in found if math.isfinite(value)) * 1.05 or 1.0


def strip(verdict: Verdict, limit: float, css: str) -> Markup:
    """Return the drawing of a verdict's interval, from −`limit` to +`limit`; the numbers beside it say the same.

    Where nothing is judged each seed is a dot, and an interval that nothing holds is left out.
    """
    parts = []
    margin, floor = verdict.question.margin, verdict.noise_floor
    if margin:
        left, right = _x(-margin, limit), _x(margin, limit)
        parts.append(f'<rect class="band" x="{left}" y="1" width="{right - left:.1f}" height="{HEIGHT - 2}"/>')
    if floor is not None:
        left, right = _x(floor.low, limit), _x(floor.high, limit)
        parts.append(f'<rect class="floor" x="{left}" y="{HEIGHT - 5}" width="{max(right - left, 1):.1f}" height="3"/>')
    parts.append(f'<path class="zero" d="M{_x(0.0, limit)} 0V{HEIGHT}"/>')
    if verdict.outcome is Outcome.NOT_JUDGED:
        parts += _seeds(verdict, limit)
    if verdict.interval is not None and not is_unbounded(verdict.interval):
        parts += _interval(verdict.interval, limit, css)
    drawn = "".join(parts)
    return Markup(f'<svg class="strip" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true" focusable="false">{drawn}</svg>')


def is_unbounded(interval: Interval) -> bool:
    """Tell whether an interval says nothing, as that of few seeds does."""
    return math.isinf(interval.low) and math.isinf(interval.high)


def _seeds(verdict: Verdict, limit: float) -> Iterator[str]:
    for one in verdict.differences:
        if one.difference is not None:
            yield f'<circle class="seed" cx="{_x(one.difference, limit)}" cy="{MIDDLE}" r="3"/>'


def _interval(interval: Interval, limit: float, css: str) -> Iterator[str]:
    low, high, dot = (_x(value, limit) for value in (interval.low, interval.high, interval.estimate))
    yield f'<path class="line {css}" d="M{low} {MIDDLE}H{high}"/>'
    for value, x, inward in ((interval.low, low, 4), (interval.high, high, -4)):
        if math.isinf(value):  # nothing holds it: an arrow instead of an end
            yield f'<path class="line {css}" d="M{x + inward} {MIDDLE - 4}L{x} {MIDDLE}L{x + inward} {MIDDLE + 4}"/>'
        else:
            yield f'<path class="line {css}" d="M{x} {MIDDLE - 4}V{MIDDLE + 4}"/>'
    if math.isfinite(interval.estimate):
        yield f'<circle class="dot {css}" cx="{dot}" cy="{MIDDLE}" r="3.5"/>'


def _x(value: float, limit: float) -> float:
    """Return the place of a value; what is further out stands at the edge."""
    share = max(-1.0, min(1.0, value / limit))
    return round(WIDTH / 2 + share * (WIDTH / 2 - EDGE), 1)
