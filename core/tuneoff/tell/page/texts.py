"""Numbers, names and paths as the page writes them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

ALLOWED = frozenset("\u00a0\u202f")  # blanks at which no line breaks: not printable, and harmless


def visible(text: str) -> str:
    """Return `text` with what a reader could not see, or what would turn its direction, as escapes: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in ALLOWED else _escape(one) for one in text)


def _escape(one: str) -> str:
    return one.encode("unicode_escape").decode()


def path_link(target: Path, folder: Path) -> str:
    """Return the relative, percent-encoded link from a page in `folder` to `target`; no text in it can be a scheme."""
    return quote(os.path.relpath(target, folder), safe="/", errors="surrogateescape")


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.0f}\u202f%"


def confidence(value: float) -> str:
    """Return a confidence in percent, exact enough that one below 1 is not 100 %."""
    return f"{100 * value:.4g}\u202f%"


def sentence(text: str) -> str:
    """Return a text with a great first letter and a full stop."""
    text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."
