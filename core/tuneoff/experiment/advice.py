"""The one line that a broken rule of a file becomes: with what the person most likely meant to write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuneoff.base.reading import SHOWN, Refused
from tuneoff.experiment.variants import NAMED
from tuneoff.experiment.yaml_reader import scalar_tag

_KEYS = {  # of a part, what a bare value most likely means
    "objective": "metric",
    "budget": "trials",
    "workers": "count",
    "timeouts": "trial_seconds",
    "failures": "retries",
    "analysis": "primary_metric",
}
_TEXTS = ("metric", "primary_metric")
_BARE: Mapping[Any, tuple[str, ...]] = {int: ("int",), float: ("int", "float"), bool: ("bool",)}  # types of YAML that fit


def refusal(error: Refused) -> str:
    """Return the place, the rule, the value, and the way out where the value tells it."""
    return f"{error}{_way_out(error.wanted, error.values[0], error.where)}" if error.wanted is not None else str(error)


def _way_out(wanted: type, value: Any, where: str) -> str:
    is_short = isinstance(value, str | int | float) and len(str(value)) <= SHOWN
    if wanted is str:
        return "; put it in quotes if it is meant as text"
    if wanted is list:
        if where == "seeds":
            return "; write a list, e.g. [0, 1], or {count: 2}"
        if where == "configurations":
            return "; write {sample: 20}, or a list of mappings"
        if isinstance(value, Mapping):
            return "; start each entry with a dash"
        is_listed = where == "adapters" or where.endswith((".choices", ".values"))
        return f"; write [{value}]" if is_listed and is_short else ""
    if wanted is dict:
        key = _KEYS.get(where, "")
        if key and isinstance(value, str if key in _TEXTS else int) and not isinstance(value, bool):
            return f"; write {{{key}: {value}}}"
        return f"; write {{type: constant, value: {value}}}" if where.startswith("search_space.") and is_short else ""
    if wanted in _BARE:
        return "; write it without quotes" if isinstance(value, str) and scalar_tag(value) in _BARE[wanted] else ""
    if value is None:
        return '; the workload of that name is "null" in quotes' if where == "workload" else "; give a name"
    if isinstance(value, list) and where in NAMED and where != "power":
        return f"; to vary it, write matrix: {{{where}: [...]}}"
    return "; put it in quotes if it is a name"
