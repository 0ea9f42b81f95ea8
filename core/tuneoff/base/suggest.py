"""The way out of a mistyped name: the nearest known one, and the list."""

from __future__ import annotations

from collections.abc import Iterable


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return one line: no `kind` of that name, the nearest known one if there is any, and all known ones."""
    names = sorted(known)
    return f"no {kind} named {name!r}{nearest(name, names)}; known: {', '.join(names) or 'none'}"


def nearest(name: object, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known name most like `name`, or "" where none is alike."""
    import difflib

    by_lower = {one.lower(): one for one in known}
    matches = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[matches[0]]!r}?" if matches else ""
