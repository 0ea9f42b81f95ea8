"""Read a carbon-intensity series: a CSV file with the columns `time` (ISO 8601 with its zone) and `g_per_kwh`."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tuneoff.base.files import read_regular, reason_of
from tuneoff.errors import ExperimentError
from tuneoff.experiment.accounting.declared import Intensity
from tuneoff.experiment.accounting.parts import MOST_G_PER_KWH

COLUMNS = ("time", "g_per_kwh")
MOST_ROWS = 100_000  # it is stored with every run
MOST_BYTES = 10_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(2100, 1, 1, tzinfo=UTC)  # a row before it, held as long as the one before, still ends in 64 bits of ns
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)", re.ASCII)


def read_series(path: Path, *, source: str = "", date: str = "") -> Intensity:
    """Return the series of a file: a row's value holds until the next row, the last as long as the one before it.

    Raises:
        ExperimentError: it cannot be read, a row breaks a rule, or there are fewer than two; one line with the file and the line.
    """
    times: list[int] = []
    values: list[float] = []
    for line, when, value in _rows(path):
        place = f"{path} line {line}"
        time = _nanoseconds(when, place)
        if times and time <= times[-1]:
            raise ExperimentError(f"{place}: times must increase, but {when} is not later than the row before; sort the rows")
        if len(times) == MOST_ROWS:
            raise ExperimentError(f"{place}: a series may have at most {MOST_ROWS} rows; cut it to the time of the runs")
        times.append(time)
        values.append(_intensity(value, place))
    if len(times) < 2:
        rule = "a series needs at least two rows, for the last one holds as long as the one before it"
        raise ExperimentError(f"{path}: {rule}, but got {len(times)}; for one value give {{g_per_kwh: ...}}")
    return Intensity(
        kind="series",
        values=tuple(values),
        times=tuple(times),
        end=times[-1] + (times[-1] - times[-2]),
        source=source or path.name,
        date=date,
    )


def _rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (number of the line, time, value) per row; empty lines are left out."""
    try:
        text = read_regular(path, MOST_BYTES, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path}: the file must be UTF-8 text, but byte {error.start} is not; save it as UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        raise ExperimentError(
            f"{path}: the file cannot be read: {reason_of(error)}; check the path and its permissions"
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
        if sorted(header) != sorted(COLUMNS):
            raise ExperimentError(f"{path} line 1: the columns must be {','.join(COLUMNS)}, but got {','.join(header)[:80]!r}")
        time, value = header.index("time"), header.index("g_per_kwh")
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(COLUMNS):
                raise ExperimentError(f"{path} line {reader.line_num}: a row must have {len(COLUMNS)} cells, but got {len(row)}")
            yield reader.line_num, row[time].strip(), row[value].strip()
    except csv.Error as error:
        raise ExperimentError(f"{path} line {reader.line_num}: not CSV: {error}; write one row per line") from error


def _nanoseconds(text: str, place: str) -> int:
    """Return a moment in ns since 1970 in UTC: exact, also where a clock is set back for the winter."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        rule = "a time must be ISO 8601 with its zone, e.g. 2026-05-01T13:00:00+02:00"
        raise ExperimentError(f"{place}: {rule}, but got {text[:60]!r}") from error
    if moment.utcoffset() is None:
        whole = text if moment.time() != _EPOCH.time() or "T" in text or ":" in text else f"{text}T00:00:00"  # a day alone
        way_out = f"write {whole}Z if it is UTC, or e.g. {whole}+02:00"
        raise ExperimentError(f"{place}: a time must have its zone, but got {text!r}; {way_out}")
    if not _EPOCH <= moment < _LAST:
        raise ExperimentError(f"{place}: a time must lie in the years 1970 to 2099, but got {text!r}; correct it")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


def _intensity(text: str, place: str) -> float:
    if not _NUMBER.fullmatch(text.lower()):  # float() would take 1_000 too
        raise ExperimentError(f"{place}: g_per_kwh must be a number, but got {text[:60]!r}")
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ExperimentError(f"{place}: g_per_kwh must be finite and at least 0, but got {text[:60]}")
    if value > MOST_G_PER_KWH:
        raise ExperimentError(f"{place}: g_per_kwh must be at most {MOST_G_PER_KWH:g}, but got {text[:60]}")
    return value
