"""What stands in the way of reading a file: it has a key twice, it is nested too deeply."""

from __future__ import annotations

import json
from typing import Any

TOO_DEEP = "is nested too deeply to be read"


def load_json(content: bytes) -> tuple[Any, list[str]]:
    """Return a JSON value and the keys that stand twice in one object, of which readers take one or the other.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    twice: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in found if names.count(name) > 1)
        return found

    try:
        return json.loads(content, object_pairs_hook=collect, parse_constant=_refuse), twice
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")
