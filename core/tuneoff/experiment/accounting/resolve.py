"""From `carbon:` and `prices:` of a file, the table of zones and series in CSV files, to what a matrix's runs are charged."""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from tuneoff.base.files import read_regular, reason_of
from tuneoff.base.reading import Refused, read
from tuneoff.errors import ExperimentError
from tuneoff.experiment.accounting.declared import WORLD, Accounting, Intensity, Prices
from tuneoff.experiment.advice import refusal
from tuneoff.experiment.schema import MOST_G_PER_KWH, NONE, CarbonPart
from tuneoff.experiment.yaml_reader import read_yaml

TABLE = Path(__file__).parent / "tables" / "intensity.json"
COLUMNS = ("time", "g_per_kwh")
MOST_ROWS = 100_000  # it is stored with every run
MOST_BYTES = 10_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(2100, 1, 1, tzinfo=UTC)  # a row before it, held as long as the one before, still ends in 64 bits of ns
DEFAULT_PRICES = Path(__file__).parent / "tables" / "prices.yaml"
_UNBILLED = {"billing_granularity_seconds": 0.0, "billing_minimum_seconds": 0.0}  # given: the digest of an analysis has them
WORLD_MEAN = CarbonPart(zone=WORLD)
NO_CARBON = "the experiment file says `carbon: none`"
NO_PRICES = "the experiment file says `prices: none`"


def zone(code: str) -> Intensity:
    """Return the mean intensity of a zone of the table, by its code, over the newest year that the table has of it.

    Raises:
        ExperimentError: there is none of that code; the line has the nearest one by its name.
    """
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    zones = table["zones"]
    if code not in zones:
        names = {f"{key} ({name})": name for key, (name, *_) in zones.items()}
        near = difflib.get_close_matches(code.title(), names.values(), n=1, cutoff=0.75)
        hint = "".join(f"; did you mean {text}?" for text, name in names.items() if name in near)
        rule = (
            "a zone is a country by its ISO 3166-1 code of three letters, e.g. DEU, or WORLD; for another give {g_per_kwh: ...}"
        )
        raise ExperimentError(f"no zone {code!r}{hint}; {rule}")
    _, value, year = zones[code]
    return Intensity(kind="zone", values=(value,), zone=code, source=table["source"], date=str(year))


def resolve(carbon: CarbonPart | Literal["none"] = WORLD_MEAN, prices: str | None = None) -> Accounting:
    """Return the accounting of a file: without `carbon` the world's mean, without `prices` those that ship.

    Raises:
        ExperimentError: an unknown zone, or a file that cannot be read or breaks a rule; one line with the key.
    """
    try:
        intensity = None
        if isinstance(carbon, CarbonPart):
            source, date = carbon.source or "", carbon.date or ""
            if carbon.series is not None:
                intensity = read_series(Path(carbon.series), source=source, date=date)
            elif carbon.g_per_kwh is not None:
                source = source or "the experiment file"
                intensity = Intensity(kind="constant", values=(carbon.g_per_kwh,), source=source, date=date)
            else:
                intensity = zone(carbon.zone or WORLD)
    except ExperimentError as error:
        raise ExperimentError(f"carbon: {error}") from error
    try:
        price_list = None if prices == NONE else read_prices(Path(prices) if prices else DEFAULT_PRICES)
    except ExperimentError as error:
        raise ExperimentError(f"prices: {error}") from error
    return Accounting(
        intensity=intensity,
        intensity_reason=NO_CARBON if intensity is None else "",
        prices=price_list,
        prices_reason=NO_PRICES if price_list is None else "",
    )


def read_prices(path: Path) -> Prices:
    """Read a price file.

    Raises:
        ExperimentError: it cannot be read or breaks a rule; one line with the file, the key, the value.
    """
    content = read_yaml(path, what="a price file", needs="`name`, `source`, `date` and the prices")
    try:
        prices: Prices = read(Prices, _UNBILLED | content)
    except Refused as error:
        raise ExperimentError(f"{path}: {refusal(error)}") from error
    return prices


def read_series(path: Path, *, source: str = "", date: str = "") -> Intensity:
    """Return the series of a file: a row's value holds until the next row, the last as long as the one before it.

    Raises:
        ExperimentError: it cannot be read, a row breaks a rule, or there are fewer than two; one line with the file and the line.
    """
    try:
        reader = csv.DictReader(io.StringIO(read_regular(path, MOST_BYTES, follow=True).decode("utf-8-sig"), newline=""))
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path}: the file must be UTF-8 text, but byte {error.start} is not; save it as UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        raise ExperimentError(
            f"{path}: the file cannot be read: {reason_of(error)}; check the path and its permissions"
        ) from error
    rows: dict[int, float] = {}
    last = -1
    try:
        if sorted(map(str.strip, reader.fieldnames or ())) != sorted(COLUMNS):
            raise ValueError(f"the columns must be {','.join(COLUMNS)}, but got {','.join(reader.fieldnames or ())[:80]!r}")
        for row in reader:
            if None not in row and not any((cell or "").strip() for cell in row.values()):
                continue
            if None in row or None in row.values():
                raise ValueError(f"a row must have {len(COLUMNS)} cells")
            when, value = ({name.strip(): cell.strip() for name, cell in row.items()}[name] for name in COLUMNS)
            time = _nanoseconds(when)
            if time <= last:
                raise ValueError(f"times must increase, but {when} is not later than the row before; sort the rows")
            if len(rows) == MOST_ROWS:
                raise ValueError(f"a series may have at most {MOST_ROWS} rows; cut it to the time of the runs")
            rows[time], last = _intensity(value), time
    except (csv.Error, ValueError) as error:
        raise ExperimentError(f"{path} line {reader.line_num}: {error}") from error
    if len(rows) < 2:
        rule = "a series needs at least two rows, for the last one holds as long as the one before it"
        raise ExperimentError(f"{path}: {rule}, but got {len(rows)}; for one value give {{g_per_kwh: ...}}")
    times = tuple(rows)
    end = 2 * times[-1] - times[-2]
    return Intensity(kind="series", values=tuple(rows.values()), times=times, end=end, source=source or path.name, date=date)


def _nanoseconds(text: str) -> int:
    """Return a moment in ns since 1970 in UTC: exact, also where a clock is set back for the winter."""
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.utcoffset() is not None and _EPOCH <= moment < _LAST:
            return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
    rule = "a time must be ISO 8601 with its zone, in the years 1970 to 2099, e.g. 2026-05-01T13:00:00+02:00"
    raise ValueError(f"{rule}, but got {text[:60]!r}")


def _intensity(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= MOST_G_PER_KWH:
            return float(text)
    raise ValueError(f"g_per_kwh must be a number from 0 to {MOST_G_PER_KWH:g}, but got {text[:60]!r}")
