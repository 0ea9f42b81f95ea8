"""What a matrix is charged, in words and as the values that its analysis freezes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices
from tuneoff.experiment.accounting.resolve import WORLD


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


def not_covered_line(accounting: Accounting, now_wall_ns: int) -> str | None:
    """Return a line where a series does not cover the present, so that runs begun now will have no CO2e; else None."""
    intensity = accounting.intensity
    if intensity is None or intensity.mean(now_wall_ns, now_wall_ns) is not None:
        return None
    start, end = series_window(intensity)
    problem = f"the series covers {start} to {end}, but now it is {wall_time(now_wall_ns)}"
    return f"carbon: {problem}: runs that begin now will have no CO2e; give a series that covers them, or {{g_per_kwh: ...}}"


def prices_line(accounting: Accounting) -> str:
    """Return one line for `tuneoff plan`."""
    if accounting.prices is None:
        return f"prices: none ({accounting.prices_reason})"
    return f"prices: {prices_text(accounting.prices)}"


def to_json(value: Accounting | Intensity | Prices | None) -> Any:
    """Return a structure as JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def frozen(accounting: Accounting) -> dict[str, Any]:
    """Return what the frozen analysis says of carbon and prices; the values of a series as their digest."""
    carbon: dict[str, Any] | None = None
    if accounting.intensity is not None:
        carbon = to_json(accounting.intensity)
        if accounting.intensity.kind == "series":
            start, end = series_window(accounting.intensity)
            digest = hashlib.sha256(msgspec.json.encode([carbon.pop("times"), carbon.pop("values")])).hexdigest()
            carbon |= {"rows": len(accounting.intensity.times), "from": start, "to": end, "sha256": digest}
            carbon.pop("end")
    return {"carbon": carbon, "prices": to_json(accounting.prices)}


def series_window(intensity: Intensity) -> tuple[str, str]:
    """Return from when to when a series is known, as UTC times."""
    return wall_time(intensity.times[0]), wall_time(intensity.end or intensity.times[-1])


def wall_time(wall_ns: int) -> str:
    """Return a moment as people write it, in UTC to the second."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=wall_ns // 1000)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
