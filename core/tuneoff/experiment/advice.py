"""The one line that a broken rule of a file becomes: with what the person most likely meant to write."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tuneoff.base.reading import SHOWN, Refused
from tuneoff.experiment.variants import NAMED
from tuneoff.experiment.yaml_reader import scalar_tag

_UNITS = {"_seconds": "seconds, e.g. 3600", "_mb": "megabytes, e.g. 600", "_percent": "a percentage, e.g. 5"}
_KEYS = {  # of a part, what a bare value most likely means
    "objective": "metric",
    "budget": "trials",
    "workers": "count",
    "timeouts": "trial_seconds",
    "failures": "retries",
    "analysis": "primary_metric",
}
_TEXTS = ("metric", "primary_metric")
LARGEST_WHOLE = 2**53  # of a float: each integer up to it is one
_SWITCHES = {**dict.fromkeys(("yes", "on", "y"), "true"), **dict.fromkeys(("no", "off", "n"), "false")}
_BARE: Mapping[Any, tuple[str, ...]] = {int: ("int",), float: ("int", "float"), bool: ("bool",)}  # types of YAML that fit


def refusal(error: Refused) -> str:
    """Return the place, the rule, the value, and the way out where the value tells it."""
    return f"{error}{_way_out(error.wanted, error.values[0], error.where)}" if error.wanted is not None else str(error)


def _way_out(wanted: type, value: Any, where: str) -> str:
    if wanted not in (str, list, dict, *_BARE):
        if value is None:
            return '; the workload of that name is "null" in quotes' if where == "workload" else "; give a name"
        if isinstance(value, list) and where in NAMED and where != "power":
            return f"; to vary it, write matrix: {{{where}: [...]}}"
        return "; put it in quotes if it is a name"
    if wanted is str:
        return "; put it in quotes if it is meant as text"
    if wanted is list:
        if isinstance(value, Mapping):
            return "; start each entry with a dash"
        count = value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
        if where == "seeds":
            return f"; write [{count}] or {{count: {count}}}" if count else "; write a list, e.g. [0, 1], or {count: 2}"
        if where == "configurations":
            return f"; write {{sample: {count or 20}}}, or a list of mappings"
        is_listed = where == "adapters" or where.endswith((".choices", ".values"))
        return f"; write [{value}]" if is_listed and _is_short(value) else ""
    if wanted is dict:
        if isinstance(value, bool) or not _is_short(value):
            return ""
        key = _KEYS.get(where, "")
        if key and isinstance(value, str if key in _TEXTS else int):
            return f"; write {{{key}: {value}}}"
        return f"; write {{type: constant, value: {value}}}" if where.startswith("search_space.") else ""
    if isinstance(value, str) and scalar_tag(value) in _BARE[wanted]:
        return "; write it without quotes"
    if (text := _meant(wanted, value)) is not None:
        return f"; write {text}"
    unit = next((text for ending, text in _UNITS.items() if where.endswith(ending)), "")
    return f"; write {unit}" if unit and wanted is not bool else ""


def _meant(wanted: type, value: Any) -> str | None:
    """Return what a value that other tools and tongues write means: no (YAML 1.1), 1e3 of an integer, 1_000, 0,5 and 50%."""
    if wanted is bool:
        return _SWITCHES.get(value.lower()) if isinstance(value, str) else None
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE:
        return str(int(value))
    if not isinstance(value, str) or len(value) > SHOWN:
        return None
    text = value.replace("_", "").replace(",", ".")
    if text.endswith("%") and scalar_tag(text[:-1]) in ("int", "float"):
        text = str(Decimal(text[:-1]).scaleb(-2))
    return text if text != value and scalar_tag(text) in _BARE[wanted] else None


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int | float) and len(str(value)) <= SHOWN
