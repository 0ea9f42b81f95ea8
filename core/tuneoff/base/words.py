"""Words that several outputs share."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """Return a number of things: "1 run", "2 runs"."""
    return f"{count} {what}{'' if count == 1 else 's'}"
