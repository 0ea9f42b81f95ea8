"""From `carbon:` and `prices:` of a file, the table of zones and series in CSV files, to what a matrix's runs are charged."""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tuneoff.base.files import read_regular, reason_of
from tuneoff.base.reading import Refused, read
from tuneoff.errors import ExperimentError
from tuneoff.experiment.accounting.declared import WORLD, Accounting, Intensity, Prices
from tuneoff.experiment.advice import refusal
from tuneoff.experiment.schema import MOST_G_PER_KWH, NONE, CarbonPart
from tuneoff.experiment.yaml_reader import read_yaml

TABLE = Path(__file__).parent / "tables" / "intensity.json"
_OTHER_NAMES: dict[str, tuple[str, ...]] = {  # whose likeness to a code or a name misleads, e.g. of UK to UKR
    **dict.fromkeys(("uk", "gb", "great britain", "england", "scotland", "wales"), ("GBR",)),
    **dict.fromkeys(("us", "america"), ("USA",)),
    "cn": ("CHN",),
    "ch": ("CHE",),
    "fr": ("FRA",),
    "se": ("SWE",),
    "at": ("AUT",),
    "ua": ("UKR",),
    "deutschland": ("DEU",),
    **dict.fromkeys(("eu", "europe"), ()),  # the table has countries
}
COLUMNS = ("time", "g_per_kwh")
MOST_ROWS = 100_000  # it is stored with every run
MOST_BYTES = 10_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(2100, 1, 1, tzinfo=UTC)  # a row before it, held as long as the one before, still ends in 64 bits of ns
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)", re.ASCII)
DEFAULT_PRICES = Path(__file__).parent / "tables" / "prices.yaml"
_UNBILLED = {"billing_granularity_seconds": 0.0, "billing_minimum_seconds": 0.0}  # given: the digest of an analysis has them
WORLD_MEAN = CarbonPart(zone=WORLD)
NO_CARBON = "the experiment file says `carbon: none`"
NO_PRICES = "the experiment file says `prices: none`"


class GridZone(NamedTuple):
    """A zone's mean intensity over the table's newest year of it, in gCO2eq/kWh."""

    code: str
    name: str
    g_per_kwh: float
    year: int
    source: str


def zone(code: str) -> GridZone:
    """Return a zone of the table by its code.

    Raises:
        ExperimentError: there is none of that code; the line has the nearest codes and names.
    """
    table = _table()
    row = table["zones"].get(code)
    if row is None:
        near = nearest_zones(code)
        hint = f"; did you mean {' or '.join(f'{item.code} ({item.name})' for item in near)}?" if near else ""
        rule = "a zone is a country by its ISO 3166-1 code of three letters, e.g. DEU, or WORLD"
        raise ExperimentError(f"no zone {code!r}{hint or '; for a zone that is not in the table give {g_per_kwh: ...}'}; {rule}")
    name, value, year = row
    return GridZone(code, name, value, year, table["source"])


def nearest_zones(text: str) -> list[GridZone]:
    """Return at most three zones whose code or name is like a text, the most like first."""
    zones = _table()["zones"]
    names = {str(entry[0]).casefold(): code for code, entry in zones.items()}
    wanted = text.strip().casefold()
    if wanted in _OTHER_NAMES:
        return [zone(code) for code in _OTHER_NAMES[wanted]]
    exact = [code for code in zones if code.casefold() == wanted] + ([names[wanted]] if wanted in names else [])
    if exact:
        return [zone(exact[0])]
    codes = [code for name, code in names.items() if len(wanted) > 2 and name.startswith(wanted)]
    codes += [names[name] for name in difflib.get_close_matches(wanted, names, n=3, cutoff=0.75)]
    codes += difflib.get_close_matches(text.strip().upper(), zones, n=3, cutoff=0.6)
    return [zone(code) for code in dict.fromkeys(codes)][:3]


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


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
                grid = zone(carbon.zone or WORLD)
                year = str(grid.year)
                intensity = Intensity(kind="zone", values=(grid.g_per_kwh,), zone=grid.code, source=grid.source, date=year)
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
    times: list[int] = []
    values: list[float] = []
    for line, when, value in _rows(path):
        where = f"{path} line {line}"
        time = _nanoseconds(when, where)
        if times and time <= times[-1]:
            raise ExperimentError(f"{where}: times must increase, but {when} is not later than the row before; sort the rows")
        if len(times) == MOST_ROWS:
            raise ExperimentError(f"{where}: a series may have at most {MOST_ROWS} rows; cut it to the time of the runs")
        times.append(time)
        values.append(_intensity(value, where))
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


def _nanoseconds(text: str, where: str) -> int:
    """Return a moment in ns since 1970 in UTC: exact, also where a clock is set back for the winter."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        rule = "a time must be ISO 8601 with its zone, e.g. 2026-05-01T13:00:00+02:00"
        raise ExperimentError(f"{where}: {rule}, but got {text[:60]!r}") from error
    if moment.utcoffset() is None:
        whole = text if moment.time() != _EPOCH.time() or "T" in text or ":" in text else f"{text}T00:00:00"  # a day alone
        way_out = f"write {whole}Z if it is UTC, or e.g. {whole}+02:00"
        raise ExperimentError(f"{where}: a time must have its zone, but got {text!r}; {way_out}")
    if not _EPOCH <= moment < _LAST:
        raise ExperimentError(f"{where}: a time must lie in the years 1970 to 2099, but got {text!r}; correct it")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000


def _intensity(text: str, where: str) -> float:
    if not _NUMBER.fullmatch(text.lower()):  # float() would take 1_000 too
        raise ExperimentError(f"{where}: g_per_kwh must be a number, but got {text[:60]!r}")
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ExperimentError(f"{where}: g_per_kwh must be finite and at least 0, but got {text[:60]}")
    if value > MOST_G_PER_KWH:
        raise ExperimentError(f"{where}: g_per_kwh must be at most {MOST_G_PER_KWH:g}, but got {text[:60]}")
    return value
