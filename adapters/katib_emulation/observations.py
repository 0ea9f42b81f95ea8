"""The metric lines of trials: the part of Katib's database manager. Kept in files, so that a restarted server still has them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

UNAVAILABLE = "unavailable"
"""The value that the collector reports for an objective that is not in the metrics file."""

ZERO_TIME = "0001-01-01T00:00:00Z"
"""The time of a line without a time."""

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Observation:
    """One value of one metric of a trial. `time` is RFC 3339, `value` what was in the file: it may be empty, or no number."""

    time: str
    name: str
    value: str


class Observations:
    """The observations of all trials, by trial name alone (as in Katib: names must be unique over all namespaces)."""

    def __init__(self, folder: Path) -> None:
        """Keep one file per trial under `folder`, which is made when the first is written."""
        self._folder = folder / "observations"
        self._lock = threading.Lock()

    def report(self, trial: str, lines: Sequence[Observation]) -> None:
        """Add observations to those that the trial has.

        Raises:
            OSError: they cannot be written; none of them counts then.
        """
        text = "".join(json.dumps(asdict(line)) + "\n" for line in lines)
        with self._lock:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._path(trial)
            before = path.read_bytes() if path.exists() else b""
            fresh = path.with_suffix(".new")
            fresh.write_bytes(before + text.encode())
            fresh.replace(path)

    def read(self, trial: str) -> list[Observation]:
        """Return the trial's observations by time (equal times in order of report); times are in UTC, with microseconds."""
        try:
            lines = self._path(trial).read_text().splitlines()
        except FileNotFoundError:
            return []
        stored = [Observation(**json.loads(line)) for line in lines]
        moments = [moment(observation.time) or datetime.min.replace(tzinfo=UTC) for observation in stored]
        order = sorted(range(len(stored)), key=moments.__getitem__)
        return [Observation(_written(moments[index]), stored[index].name, stored[index].value) for index in order]

    def delete(self, trial: str) -> None:
        """Forget a trial; one that has none is no error."""
        self._path(trial).unlink(missing_ok=True)

    def _path(self, trial: str) -> Path:
        if not trial or "/" in trial or trial.startswith("."):
            raise ValueError(f"a trial's name must be a DNS name, but got {trial!r}")
        return self._folder / f"{trial}.jsonl"


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


def _written(time: datetime) -> str:
    fraction = f".{time.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{time.year:04d}-{time:%m-%dT%H:%M:%S}{fraction}Z"


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)


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
        value = number(line.value)
        if value is not None:
            if metric["min"] == UNAVAILABLE:
                metric["min"] = metric["max"] = line.value
            elif value < float(metric["min"]):
                metric["min"] = line.value
            elif value > float(metric["max"]):
                metric["max"] = line.value
        metric["latest"] = line.value
    return {"metrics": [{name: value for name, value in metric.items() if value} for metric in metrics.values()]}


def is_available(trial: Mapping[str, Any]) -> bool:
    """Whether the objective has a latest value (an empty one counts)."""
    objective = trial["spec"]["objective"]["objectiveMetricName"]
    metrics = ((trial.get("status") or {}).get("observation") or {}).get("metrics", ())
    return any(metric["name"] == objective and metric.get("latest", "") != UNAVAILABLE for metric in metrics)
