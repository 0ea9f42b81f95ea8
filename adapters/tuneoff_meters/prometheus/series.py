"""Range queries in windows, and from their series to power samples: real scrape times, one domain per counter, resets."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base.clock import NANOSECONDS
from tuneoff.meter import MeterError, PowerSample
from tuneoff_meters.prometheus.sources import Labels, Unit

POINTS_PER_QUERY = 10_000  # the server refuses more than 11 000
FINEST_INTERVAL = 2.0  # between scrapes that the first look, in steps of 1 s, can tell from each other
MOST_WATTS = 20_000.0  # of one domain: a counter that fell and now stands for more did not start again from 0
_MARK = "tuneoff_part"
_Key = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Points:
    """A metric's scraped values by their time: seconds of the server's clock since 1970."""

    labels: Labels
    values: dict[float, float] = field(default_factory=dict)


def with_times(query: str, times: str | None = None) -> str:
    """Return a query for values and, as series of their own, for the times at which they were scraped.

    `times`: a query for these, with the same labels, where the first one is no plain selector.

    A range query alone gives the last value before each step: it would move energy by up to a scrape interval.
    """
    value = f'label_replace((\n{query}\n), "{_MARK}", "value", "", "")'  # on lines of its own: it may end in a comment
    time = f'label_replace({times or f"timestamp({chr(10)}{query}{chr(10)})"}, "{_MARK}", "time", "", "")'
    return f"{value} or {time}"


def points(answers: Iterable[Sequence[Mapping[str, Any]]]) -> list[Points]:
    """Return the scraped points of each series of `with_times`; the answers are of successive windows.

    Raises:
        MeterError: a value is no number.
    """
    found: dict[_Key, Points] = {}
    for answer in answers:
        values: dict[_Key, tuple[Labels, dict[float, float]]] = {}
        times: dict[_Key, dict[float, float]] = {}
        for series in answer:
            labels: Labels = {name: text for name, text in series["metric"].items() if name != _MARK}
            key = tuple(sorted((name, text) for name, text in labels.items() if name != "__name__"))
            steps = _numbers(series.get("values", ()))
            if series["metric"].get(_MARK) == "time":
                times[key] = steps
            else:
                values[key] = (labels, steps)
        for key, (labels, steps) in values.items():
            scraped = found.setdefault(key, Points(labels)).values
            for step, value in steps.items():
                time = times.get(key, {}).get(step)
                if time is not None and math.isfinite(value):
                    scraped[time] = value
    return list(found.values())


def merged(parts: Sequence[Points]) -> list[tuple[float, float]]:
    """Return the points of series that are one counter or gauge, in order of time; of equal times the first."""
    values: dict[float, float] = {}
    for part in parts:
        for time, value in part.values.items():
            values.setdefault(time, value)
    return sorted(values.items())


def samples(
    domain: str, scraped: Sequence[tuple[float, float]], unit: Unit, offset_seconds: float
) -> tuple[list[PowerSample], list[str]]:
    """Return the power samples of a domain on this host's wall clock, and what was strange.

    A counter that falls has started again from 0 (a restart, or RAPL's wrap, of which the part up to the wrap is unknown and
    counts nothing): energy never falls, and is never made up.
    """
    found: list[PowerSample] = []
    strange: dict[str, int] = defaultdict(int)
    total, before = 0.0, None
    for time, value in scraped:
        t = round((time - offset_seconds) * NANOSECONDS)
        amount = value * unit.scale
        if amount < 0:
            strange["values below 0, which were left out"] += 1
            continue
        if unit.quantity == "watts":
            found.append(PowerSample(t=t, domain=domain, watts=amount))
            continue
        if before is not None:
            then, last = before
            if amount >= last:
                total += amount - last
            elif amount <= MOST_WATTS * (time - then):
                total += amount
                strange["restarts of the counter; what it lost before each is not counted"] += 1
            else:
                strange["falls of the counter that are no restart; nothing was counted for them"] += 1
        before = (time, amount)
        found.append(PowerSample(t=t, domain=domain, joules=total))
    return found, [f"{domain}: {count} {what}" for what, count in strange.items()]


def scrape_interval(all_times: Iterable[Sequence[float]]) -> float | None:
    """Return the longest of the series' median distances between scrapes in seconds, or None where no series has two."""
    gaps = ([later - earlier for earlier, later in itertools.pairwise(times)] for times in all_times)
    return max((statistics.median_high(those) for those in gaps if those), default=None)


def _numbers(values: Any) -> dict[float, float]:
    try:
        return {float(step): float(text) for step, text in values}
    except (TypeError, ValueError) as error:
        raise MeterError(
            f"Prometheus must give pairs of time and number, but a series has others: {error}; check `url`"
        ) from error


def step_of(seconds: float, interval: float | None) -> float:
    """Return a step that sees every scrape; `interval`: of the scrapes, as the first look has shown it."""
    if interval is not None and interval > FINEST_INTERVAL:
        return min(30.0, interval / 2)
    return min(1.0, max(0.1, seconds / 2000))


def windows(start: float, end: float, step: float) -> Iterator[tuple[float, float]]:
    """Yield windows that together have a step at `end` and every `step` before it, down to `start`; as many as one query may."""
    steps = max(1, math.ceil((end - start) / step))
    for first in range(0, steps + 1, POINTS_PER_QUERY):
        last = min(first + POINTS_PER_QUERY - 1, steps)
        yield end - (steps - first) * step, end - (steps - last) * step
