"""Table 1 as people read it: each declared variable beside what was found, once where the runs agree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tuneoff.experiment.identity import canonical_json
from tuneoff.records.model import DeclaredVariable, RunRecord
from tuneoff.report.figures import MISSING

HEADER = ("", "variable", "declared", "found", "unit", "agrees", "runs")
AGREES = {True: "yes", False: "NO", None: MISSING}
_DIGEST = re.compile(r"[0-9a-f]{16,}")
_SHOWN = 12  # digits of a digest; the whole one is in the JSON

Named = tuple[str, RunRecord]  # a run's name, as tables write it


def declared_rows(runs: Sequence[Named]) -> list[tuple[str, ...]]:
    """Return a row per variable, and more than one where runs differ in what was declared or whether it was found.

    Numbers that were found in several runs are least–greatest.
    """
    rows: list[tuple[str, ...]] = []
    symbols = dict.fromkeys(variable.symbol for _, run in runs for variable in run.declared)
    for symbol in symbols:
        groups: dict[str, list[tuple[str, DeclaredVariable]]] = {}
        for name, run in runs:
            for variable in run.declared:
                if variable.symbol == symbol:
                    key = canonical_json([_plain(variable.declared), variable.agrees, _without_numbers(variable.found)])
                    groups.setdefault(key, []).append((name, variable))
        for members in groups.values():
            first = members[0][1]
            which = "all" if len(groups) == 1 else ", ".join(name for name, _ in members)
            found = _merged([variable.found for _, variable in members])
            cells = (symbol, first.name, text(first.declared), text(found), first.unit, AGREES[first.agrees], which)
            rows.append(cells)
    return rows


def mismatches(runs: Iterable[Named]) -> list[str]:
    """Return one line per run and variable that is not what was declared."""
    return [
        f"{name}: {variable.symbol} ({variable.name}): {variable.how}"
        for name, run in runs
        for variable in run.declared
        if variable.agrees is False
    ]


def declared_json(run: RunRecord) -> list[dict[str, Any]]:
    """Return a run's declared variables as JSON values."""
    fields = DeclaredVariable.__dataclass_fields__
    return [{name: getattr(variable, name) for name in fields} for variable in run.declared]


def text(value: Any) -> str:
    """Return a value in few letters: digests are cut, empty parts left out, numbers as ranges."""
    if value is None or value in ({}, []):
        return MISSING
    if isinstance(value, Mapping):
        parts = [f"{name} {text(item)}" for name, item in value.items() if item is not None and item not in ({}, [])]
        return ", ".join(parts) or MISSING
    if isinstance(value, tuple):  # least and greatest
        low, high = (f"{number:g}" if isinstance(number, float) else str(number) for number in value)
        return low if low == high else f"{low}–{high}"
    if isinstance(value, list):
        return ", ".join(map(text, value))
    if isinstance(value, float):
        return f"{value:g}"
    shown = str(value)
    return f"{shown[:_SHOWN]}..." if _DIGEST.fullmatch(shown) and len(shown) > _SHOWN + 3 else shown


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_numbers(value: Any) -> Any:
    """Return what must be equal for two runs to share a row: everything but numbers."""
    if isinstance(value, Mapping):
        return {name: _without_numbers(item) for name, item in value.items()}
    return "number" if _is_number(value) else _plain(value)


def _merged(values: Sequence[Any]) -> Any:
    """Return values that are equal but for numbers as one, with (least, greatest) for each number."""
    first = values[0]
    if isinstance(first, Mapping):
        return {name: _merged([value[name] for value in values]) for name in first}
    return (min(values), max(values)) if _is_number(first) else first


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
