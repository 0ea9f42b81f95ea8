"""The metric lines of trials: the part of Katib's database manager. Kept in the store's database."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from katib_emulation.errors import StorageError

UNAVAILABLE = "unavailable"
"""The value that the collector reports for an objective that is not in the metrics file."""

ZERO_TIME = "0001-01-01T00:00:00Z"
"""The time of a line without a time."""

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)


class Observation(NamedTuple):
    """One value of one metric of a trial. `time` is RFC 3339, `value` what was in the file: it may be empty, or no number."""

    time: str
    name: str
    value: str


class Observations:
    """The observations of all trials, by trial name alone (as in Katib: names must be unique over all namespaces)."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def report(self, trial: str, lines: Sequence[Observation]) -> None:
        """Add observations to those that the trial has.

        Raises:
            StorageError: they cannot be written; none of them counts then.
        """
        try:
            self._database.execute("INSERT INTO observations VALUES (?, ?)", (trial, json.dumps(lines)))
        except sqlite3.Error as error:
            raise StorageError(f"cannot write the metrics of {trial}: {error}") from error

    def read(self, trial: str) -> list[Observation]:
        """Return the trial's observations by time (equal times in order of report)."""
        rows = self._database.execute("SELECT lines FROM observations WHERE trial = ? ORDER BY rowid", (trial,))
        stored = [Observation(*line) for (text,) in rows for line in json.loads(text)]
        return sorted(stored, key=lambda line: moment(line.time) or datetime.min.replace(tzinfo=UTC))

    def delete(self, trial: str) -> None:
        """Forget a trial; one that has none is not an error."""
        self._database.execute("DELETE FROM observations WHERE trial = ?", (trial,))


def moment(text: str) -> datetime | None:
    """Return the time that an RFC 3339 text names, cut to microseconds (what Katib's database keeps); None for any other text."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    seconds, fraction, zone = match.groups()
    offset = "+00:00" if zone == "Z" else zone
    try:
        return datetime.fromisoformat(f"{seconds}.{(fraction or '0')[:6].ljust(6, '0')}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):  # no such day or hour; or before year 1 in UTC
        return None


def number(text: str) -> float | None:
    """Return the number in a text, None if it has none (stricter than float(): no blanks, no underscores)."""
    return float(text) if _NUMBER.fullmatch(text) else None


def observe(lines: Iterable[Observation], strategies: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the observation over the metrics that have a strategy; `unavailable` where there is no value. Lines are by time."""
    metrics = {s["name"]: {"name": s["name"], "min": UNAVAILABLE, "max": UNAVAILABLE, "latest": UNAVAILABLE} for s in strategies}
    for line in lines:
        metric = metrics.get(line.name)
        if metric is None:
            continue
        metric["latest"] = line.value
        value = number(line.value)
        if value is None:
            continue
        if metric["min"] == UNAVAILABLE:
            metric["min"] = metric["max"] = line.value
        elif value < float(metric["min"]):
            metric["min"] = line.value
        elif value > float(metric["max"]):
            metric["max"] = line.value
    return {"metrics": [{name: value for name, value in metric.items() if value} for metric in metrics.values()]}


def is_available(trial: Mapping[str, Any]) -> bool:
    """Whether the objective has a latest value (an empty one counts)."""
    objective = trial["spec"]["objective"]["objectiveMetricName"]
    metrics = ((trial.get("status") or {}).get("observation") or {}).get("metrics", ())
    return any(metric["name"] == objective and metric.get("latest", "") != UNAVAILABLE for metric in metrics)
