"""Typed structures of the Kubernetes API over plain JSON: what Go's decoder keeps, drops and refuses.

A table names the fields of each structure with their types: `*` a pointer (an empty value is kept), `[]` a list, `{}` a map of
strings, a trailing `?` a field that is left out when it is empty. Sources: k8s.io/api v0.34 for Jobs, Katib v0.19.0 for
Experiments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Table = Mapping[str, Mapping[str, str]]

_PRIMITIVES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "time": (str,),
    "bool": (bool,),
    "int32": (int,),
    "int64": (int,),
    "float64": (int, float),
    "object": (dict,),
    "any": (object,),
    "quantity": (str, int, float),
}


@cache
def table(name: str) -> Table:
    """Return a table of this folder: `experiment_fields` or `job_fields`."""
    loaded: Table = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


class TypeMismatch(NamedTuple):
    """A value of a wrong type at `path` (names of fields, without indices), within structure `struct`."""

    struct: str
    path: tuple[str, ...]
    got: str
    wanted: str


class Lost(NamedTuple):
    """A value that the structure does not keep: an unknown field, or an empty value of a field that is left out when empty."""

    path: tuple[str, ...]  # with indices
    value: Any


def json_type(value: Any) -> str:
    """Return the name of a value's JSON type, as Go's decoder words it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]


class Decoder:
    """Reads JSON into the structures of one table, and keeps account of mismatches and losses."""

    def __init__(self, fields: Table) -> None:
        self._fields = fields
        self.mismatches: list[TypeMismatch] = []
        self.lost: list[Lost] = []

    def read(self, value: Mapping[str, Any], struct: str) -> dict[str, Any]:
        """Return what the structure keeps of `value`."""
        return self._struct(value, struct, (), ())

    def _struct(self, value: Mapping[str, Any], struct: str, path: tuple[str, ...], names: tuple[str, ...]) -> dict[str, Any]:
        known = self._fields[struct]
        kept: dict[str, Any] = {}
        for name, item in value.items():
            there = (*path, name)
            if name not in known or item is None:
                if not (item is None and known.get(name) == "time"):  # an unset time is written as null
                    self.lost.append(Lost(there, item))
                continue
            wanted = known[name]
            read = self._value(item, wanted.rstrip("?"), there, (*names, name), struct)
            if wanted.endswith("?") and not wanted.startswith("*") and wanted.rstrip("?") not in self._fields and not read:
                self.lost.append(Lost(there, item))
                continue
            kept[name] = read
        return kept

    def _value(self, value: Any, wanted: str, path: tuple[str, ...], names: tuple[str, ...], struct: str) -> Any:
        if wanted.startswith("*"):
            return self._value(value, wanted[1:], path, names, struct)
        if wanted.startswith("[]"):
            if not isinstance(value, list):
                return self._mismatch(value, wanted, names, struct)
            return [self._value(item, wanted[2:], (*path, str(i)), names, struct) for i, item in enumerate(value)]
        if wanted.startswith("{}"):
            if not isinstance(value, dict):
                return self._mismatch(value, "map[string]string", names, struct)
            return {key: self._value(item, wanted[2:], (*path, key), names, struct) for key, item in value.items()}
        if wanted in _PRIMITIVES:
            fits = isinstance(value, _PRIMITIVES[wanted]) and (wanted in ("bool", "any") or not isinstance(value, bool))
            return value if fits else self._mismatch(value, wanted, names, struct)
        if not isinstance(value, dict):
            return self._mismatch(value, wanted, names, struct)
        return self._struct(value, wanted, path, names)

    def _mismatch(self, value: Any, wanted: str, names: tuple[str, ...], struct: str) -> Any:
        self.mismatches.append(TypeMismatch(struct, names, json_type(value), wanted))
        return value
