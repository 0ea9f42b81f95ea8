"""Table 1 as people read it: each declared variable beside what was found, once where the runs agree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tuneoff.base.format import MISSING
from tuneoff.base.identity import canonical_json, digest
from tuneoff.record.run_record import DeclaredVariable, RunRecord

HEADER = ("", "variable", "declared", "found", "unit", "agrees", "runs")
AGREES = {True: "yes", False: "NO", None: MISSING}
_DIGEST = re.compile(r"[0-9a-f]{16,}")
_SHOWN = 12  # digits of a digest; the whole one is in the JSON

Named = tuple[str, RunRecord]  # a run's name, as tables write it


def declared_rows(runs: Sequence[Named]) -> Iterator[tuple[str, ...]]:
    """Yield a row per variable, and more than one where runs differ in what was declared or whether it was found.

    Numbers that were found in several runs are lowest–highest.
    """
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
            which = "all" if len(groups) == 1 else together(name for name, _ in members)
            merged = _merged([variable.found for _, variable in members])
            yield (symbol, first.name, text(first.declared), text(merged), first.unit, AGREES[first.agrees], which)


def mismatches(runs: Iterable[Named]) -> list[str]:
    """Return one line per run and variable that is not what was declared."""
    return [
        f"{name}: {variable.symbol} ({variable.name}): {variable.how}"
        for name, run in runs
        for variable in run.declared
        if variable.agrees is False
    ]


def text(value: Any) -> str:
    """Return a value in few letters: digests are cut, empty parts left out, numbers as ranges, files counted."""
    if value is None or value in ({}, []):
        return MISSING
    if isinstance(value, Mapping):
        if all(item is None or _is_digest(item) for item in value.values()) and "sha256" not in value:
            lost = sum(item is None for item in value.values())
            unreadable = f", {lost} of them unreadable" if lost else ""
            files = "1 file" if len(value) == 1 else f"{len(value)} files"
            return f"{files} ({text(digest(dict(value), _SHOWN + 4))} together{unreadable})"
        parts = [f"{name} {text(item)}" for name, item in value.items() if item is not None and item not in ({}, [])]
        return ", ".join(parts) or MISSING
    if isinstance(value, tuple):  # least and greatest
        low, high = (f"{number:g}" if isinstance(number, float) else str(number) for number in value)
        return low if low == high else f"{low}–{high}"
    if isinstance(value, list):
        return ", ".join(map(text, value))
    if isinstance(value, float):
        return f"{value:g}"
    letters = str(value)
    return f"{letters[:_SHOWN]}..." if _is_digest(value) else letters


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) > _SHOWN + 3 and _DIGEST.fullmatch(value) is not None


def together(names: Iterable[str]) -> str:
    """Return runs by their names, the seeds of one cell together: `serial random seeds 0, 1`."""
    cells: dict[str, list[str]] = {}
    for name in names:
        cell, _, seed = name.partition(" seed ")
        cells.setdefault(cell, []).append(seed)
    return "; ".join(
        f"{cell} seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}" if all(seeds) else cell for cell, seeds in cells.items()
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_numbers(value: Any) -> Any:
    """Return what must be equal for two runs to share a row: everything but numbers."""
    if isinstance(value, Mapping):
        return {name: _without_numbers(item) for name, item in value.items()}
    return None if _is_number(value) else _plain(value)


def _merged(values: Sequence[Any]) -> Any:
    """Return values that are equal but for numbers as one, with (least, greatest) for each number."""
    first = values[0]
    if isinstance(first, Mapping):
        return {name: _merged([value[name] for value in values]) for name in first}
    numbers = [value for value in values if _is_number(value)]
    return (min(numbers), max(numbers)) if numbers else first


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
