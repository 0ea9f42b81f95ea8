"""The shipped table of carbon intensities by zone: countries by their ISO 3166-1 code of three letters, and the world's mean."""

from __future__ import annotations

import difflib
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tuneoff.errors import ExperimentError

TABLE = Path(__file__).parent / "tables" / "intensity.json"
WORLD = "WORLD"
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


class Zone(NamedTuple):
    """A zone's mean intensity over the table's newest year of it, in gCO2eq/kWh."""

    code: str
    name: str
    g_per_kwh: float
    year: int
    source: str


def zone(code: str) -> Zone:
    """Return a zone of the table by its code.

    Raises:
        ExperimentError: there is none of that code; the line has the nearest codes and names.
    """
    table = _table()
    found = table["zones"].get(code)
    if found is None:
        near = nearest_zones(code)
        hint = f"; did you mean {' or '.join(f'{item.code} ({item.name})' for item in near)}?" if near else ""
        rule = "a zone is a country by its ISO 3166-1 code of three letters, e.g. DEU, or WORLD"
        raise ExperimentError(f"no zone {code!r}{hint or '; for a zone that is not in the table give {g_per_kwh: ...}'}; {rule}")
    name, value, year = found
    return Zone(code, name, value, year, table["source"])


def nearest_zones(text: str) -> list[Zone]:
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
