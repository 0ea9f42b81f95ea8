"""Carbon intensity and prices as they were resolved for a matrix, in words, and as its analysis freezes them.

They are stored as `accounting.json` in every run's folder.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta

from tuneoff.base.capabilities import Capabilities
from tuneoff.base.files import read_regular, replacing
from tuneoff.base.json_values import plain
from tuneoff.base.layout import ACCOUNTING
from tuneoff.base.reading import Refused, show
from tuneoff.errors import ResultsError

FORMAT_VERSION = 1
WORLD = "WORLD"  # the zone that is the whole world
Text = Annotated[str, Meta(min_length=1)]
Amount = Annotated[float, Meta(ge=0, le=1e9)]  # so that no product of it comes out infinite


class PickledAsJson(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Is pickled as JSON. msgspec leaves out what *is* a default; what pickle restores would only be equal to it, and written."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return values

    def __reduce__(self) -> tuple[Callable[[bytes], Self], tuple[bytes]]:
        return functools.partial(msgspec.json.decode, type=type(self)), (msgspec.json.encode(self),)


class Intensity(PickledAsJson, frozen=True, kw_only=True, omit_defaults=True):
    """Carbon intensity of the grid in gCO2eq/kWh: a right-continuous step function of wall-clock time.

    `constant` and `zone` have one value for ever (`values[0]`); a `series` holds `values[i]` from `times[i]` (wall-clock ns,
    UTC) on, and is known from `times[0]` to `end`.
    """

    kind: Literal["constant", "zone", "series"]
    values: tuple[float, ...]
    times: tuple[int, ...] = ()
    end: int | None = None
    zone: str = ""
    source: str = ""
    date: str = ""  # of the data

    def __post_init__(self) -> None:
        """Hold what is read of a file to what `mean` relies on.

        Raises:
            ValueError: a series without rows, end or order; or not one value for ever.
        """
        if self.kind != "series":
            if len(self.values) != 1:
                raise ValueError(f"an intensity of kind {self.kind} must have one value, but has {len(self.values)}")
            return
        moments = (*self.times, self.end if self.end is not None else -1)
        if not self.times or len(self.times) != len(self.values):
            raise ValueError(f"a series must have a value for each time, but has {len(self.values)} for {len(self.times)}")
        if moments[0] < 0 or moments[-1] >= 2**63 or any(earlier >= later for earlier, later in pairwise(moments)):
            raise ValueError("the times of a series and its end must increase, from 1970 on")

    def mean(self, start_wall_ns: int, end_wall_ns: int) -> float | None:
        """Return the mean over an interval (at a moment where it is empty), or None where the series does not cover it."""
        if self.kind != "series":
            return self.values[0]
        if not self.times or self.end is None or start_wall_ns < self.times[0] or end_wall_ns > self.end:
            return None
        index = bisect.bisect_right(self.times, start_wall_ns) - 1
        if end_wall_ns <= start_wall_ns:
            return self.values[index]
        total, at = 0.0, start_wall_ns
        while at < end_wall_ns:
            until = min(end_wall_ns, self.times[index + 1] if index + 1 < len(self.times) else end_wall_ns)
            total += self.values[index] * (until - at)
            at, index = until, index + 1
        return total / (end_wall_ns - start_wall_ns)

    def cuts(self, start_wall_ns: int, end_wall_ns: int) -> tuple[int, ...]:
        """Return the moments strictly inside an interval at which the value changes."""
        return self.times[bisect.bisect_right(self.times, start_wall_ns) : bisect.bisect_left(self.times, end_wall_ns)]


def _date(text: str) -> None:
    if not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", text):
        raise Refused(f"must be a year, a month or a day, e.g. 2026-03, but got {show(text)}")


Date = Annotated[str, _date]


class Prices(PickledAsJson, frozen=True, kw_only=True, omit_defaults=True):
    """A price file: USD; what is left out is not known, and what needs it is null with that reason."""

    name: Text
    source: Text
    date: Date
    premises: Literal["rented", "own"] = "rented"  # own: energy times the tariff, in place of rent
    usd_per_vcpu_hour: Amount | None = None
    usd_per_gb_hour: Amount | None = None  # of memory, 10^9 bytes
    assumed_gb_per_vcpu: Amount | None = None  # memory of a slot where `workers.memory_mb` is not given
    usd_per_accelerator_hour: Amount | None = None
    head_node_usd_per_hour: Amount | None = None  # of a framework that needs one
    database_usd_per_hour: Amount | None = None
    usd_per_kwh: Amount | None = None
    billing_granularity_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.0  # 0: to the nanosecond
    billing_minimum_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 0.0

    def __post_init__(self) -> None:
        if self.premises == "own" and self.usd_per_kwh is None:
            raise ValueError("`premises: own` needs `usd_per_kwh`, the tariff that is paid in place of rent")


class Accounting(PickledAsJson, frozen=True, kw_only=True, omit_defaults=True):
    """What a matrix's runs are charged; where something is None its reason says why."""

    intensity: Intensity | None = None
    intensity_reason: str = "no carbon intensity was recorded with this run"
    prices: Prices | None = None
    prices_reason: str = "no prices were recorded with this run"
    head_node: bool = False  # the run's framework needs one beside the slots; its price is in `prices`
    database: bool = False
    format_version: int = FORMAT_VERSION


NO_ACCOUNTING = Accounting()


def of_run(accounting: Accounting, capabilities: Capabilities) -> Accounting:
    """Return the accounting of a run of a framework, with whether it needs a head node and a database."""
    return msgspec.structs.replace(accounting, head_node=capabilities.head_node, database=capabilities.database)


def write_accounting(run_dir: Path, accounting: Accounting) -> Path:
    """Write what the run is charged into its folder and return the path."""
    path = run_dir / ACCOUNTING
    with replacing(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(accounting), indent=1) + b"\n")
    return path


def read_accounting(run_dir: Path) -> Accounting:
    """Read what a run is charged; a folder without the file has no intensity and no prices, and says so.

    Raises:
        ResultsError: it cannot be read, is damaged, or has another format version.
    """
    path = run_dir / ACCOUNTING
    try:
        accounting = msgspec.json.decode(read_regular(path), type=Accounting)
    except FileNotFoundError:
        return NO_ACCOUNTING
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ResultsError(f"{path} is damaged: {error}; remove it, and the run has no carbon and no cost") from error
    if accounting.format_version != FORMAT_VERSION:
        problem = f"has format version {accounting.format_version}, but this tuneoff reads version {FORMAT_VERSION}"
        raise ResultsError(f"{path} {problem}; use the tuneoff that wrote it")
    return accounting


def intensity_text(intensity: Intensity) -> str:
    """Return a carbon intensity with its zone, source and date, e.g. "381 gCO2eq/kWh, zone DEU, 2023 (...)"."""
    about = ", ".join(filter(None, (f"zone {intensity.zone}" if intensity.zone else "", intensity.date)))
    if intensity.kind == "series":
        start, end = series_window(intensity)
        least, most = min(intensity.values), max(intensity.values)
        value = f"series of {len(intensity.values)} values, {least:g} to {most:g} gCO2eq/kWh, {start} to {end}"
    else:
        value = f"{intensity.values[0]:g} gCO2eq/kWh"
    return f"{value}{f', {about}' if about else ''} ({intensity.source})"


def prices_text(prices: Prices) -> str:
    """Return the name of prices with their date and whose premises they are for."""
    return f"{prices.name}, {prices.date}, {'own premises' if prices.premises == 'own' else 'rented'}"


def carbon_line(accounting: Accounting) -> str:
    """Return one line for `tuneoff plan`."""
    if accounting.intensity is None:
        return f"carbon: none ({accounting.intensity_reason})"
    default = "; name the zone with carbon: {zone: ...}" if accounting.intensity.zone == WORLD else ""
    return f"carbon: {intensity_text(accounting.intensity)}{default}"


def prices_line(accounting: Accounting) -> str:
    """Return one line for `tuneoff plan`."""
    if accounting.prices is None:
        return f"prices: none ({accounting.prices_reason})"
    return f"prices: {prices_text(accounting.prices)}"


def frozen(accounting: Accounting) -> dict[str, Any]:
    """Return what the frozen analysis says of carbon and prices; the values of a series as their digest."""
    carbon: dict[str, Any] | None = None
    if accounting.intensity is not None:
        carbon = accounting.intensity.to_json()
        if accounting.intensity.kind == "series":
            start, end = series_window(accounting.intensity)
            digest = hashlib.sha256(msgspec.json.encode([carbon.pop("times"), carbon.pop("values")])).hexdigest()
            carbon |= {"rows": len(accounting.intensity.times), "from": start, "to": end, "sha256": digest}
            carbon.pop("end")
    return {"carbon": carbon, "prices": plain(accounting.prices)}


def series_window(intensity: Intensity) -> tuple[str, str]:
    """Return from when to when a series is known, as UTC times."""
    return wall_time(intensity.times[0]), wall_time(intensity.end or intensity.times[-1])


def wall_time(wall_ns: int) -> str:
    """Return a moment as people write it, in UTC to the second."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=wall_ns // 1000)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
