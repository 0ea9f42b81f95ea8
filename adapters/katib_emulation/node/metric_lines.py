"""What Katib's file collector (v0.19) reads out of a metrics file: text by regular expressions, or one JSON object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from katib_emulation.observations import UNAVAILABLE, ZERO_TIME, Observation, moment

DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
TIMESTAMP_KEY = "timestamp"


class CollectorError(Exception):
    """The collector ends with an error, and with it the pod: the text is the last line of its log."""


@dataclass(frozen=True, slots=True)
class MetricFormat:
    """How a metrics file is read. `names`: the objective first."""

    names: tuple[str, ...]
    kind: Literal["TEXT", "JSON"] = "TEXT"
    filters: tuple[str, ...] = ()

    def observations(self, content: str) -> list[Observation]:
        """Return what is reported to the database: all values of all names, or one `unavailable` where the objective is missing.

        Raises:
            CollectorError: the file is in another format.
        """
        read = _json_lines if self.kind == "JSON" else _text_lines
        found = list(read(content.split("\n"), self.names, self._filters()))
        if any(observation.name == self.names[0] for observation in found):
            return found
        return [Observation(ZERO_TIME, self.names[0], UNAVAILABLE)]

    def values(self, line: str, names: Sequence[str]) -> list[tuple[str, float]]:
        """Return (name, value) for a line of the growing file, as the rules of early stopping see it: any name of a line that
        contains one of `names`.

        Raises:
            CollectorError: a value is no number (the default filter reads `nan` and `inf` as empty), or the line no JSON.
        """
        if self.kind == "JSON":
            parsed = _parsed(line)
            present = [(name, parsed[name]) for name in names if isinstance(parsed.get(name), str)]
        elif any(name in line for name in names):
            present = list(_matches(line, self._filters()))
        else:
            present = []
        return [(name, parse_float(value, name)) for name, value in present]

    def _filters(self) -> list[re.Pattern[str]]:
        try:
            return [re.compile(text, re.ASCII) for text in self.filters or (DEFAULT_FILTER,)]
        except re.error as error:
            raise CollectorError(f"Failed to collect logs: error parsing regexp: {error}") from error


def parse_float(text: str, name: str) -> float:
    """Return the number that a text is.

    Raises:
        CollectorError: it is none.
    """
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise CollectorError(f"Unable to parse value {text} to float for metric {name}") from None


def _text_lines(lines: Sequence[str], names: Sequence[str], filters: Sequence[re.Pattern[str]]) -> Iterator[Observation]:
    for line in lines:
        if not any(name in line for name in names):
            continue
        first, blank, _ = line.partition(" ")
        time = first if blank and moment(first) is not None else ZERO_TIME
        for name, value in _matches(line, filters):
            if name in names:
                yield Observation(time, name, value)


def _matches(line: str, filters: Sequence[re.Pattern[str]]) -> Iterator[tuple[str, str]]:
    for pattern in filters:
        if pattern.groups >= 2:
            for match in pattern.finditer(line):
                yield (match[1] or "").strip(), (match[2] or "").strip()


def _json_lines(lines: Sequence[str], names: Sequence[str], _filters: Sequence[re.Pattern[str]]) -> Iterator[Observation]:
    for line in lines:
        if not line:
            continue
        parsed = _parsed(line)
        time = _json_time(parsed.get(TIMESTAMP_KEY)) or ZERO_TIME
        for name in names:
            if isinstance(parsed.get(name), str):  # Katib ignores JSON numbers
                yield Observation(time, name, parsed[name])


def _parsed(line: str) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError as error:
        raise CollectorError(f"Failed to collect logs: failed to parse the json object: {error}") from error
    if not isinstance(parsed, dict):
        raise CollectorError("Failed to collect logs: failed to parse the json object: a line is no object")
    return parsed


def _json_time(value: object) -> str | None:
    """Return a time as RFC 3339. Numbers are read as Katib does: a fraction's digits count nanoseconds (1.05 is 1 s + 5 ns)."""
    if isinstance(value, str):
        return value if moment(value) is not None else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds, _, fraction = f"{Decimal(repr(value)):f}".partition(".")
    nanoseconds = int(fraction or 0)
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds) + nanoseconds // 10**9)
    except (OverflowError, ValueError):
        return None
    digits = f".{nanoseconds % 10**9:09d}".rstrip("0").rstrip(".")
    return f"{time.year:04d}-{time:%m-%dT%H:%M:%S}{digits}Z"
