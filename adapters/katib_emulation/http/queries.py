"""The parameters of a request's query."""

from __future__ import annotations

from collections.abc import Mapping

from katib_emulation.statuses import bad_request


def is_true(text: str | None) -> bool:
    """Whether a parameter is set, in any of the ways that Go understands (the Python client sends `True`)."""
    return text in ("1", "t", "T", "true", "True", "TRUE")


def count(query: Mapping[str, str], name: str) -> int | None:
    """Return a parameter as a number of 0 or more; None: it is not given.

    Raises:
        ApiError: 400, it is no such number.
    """
    text = query.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise bad_request(f'invalid value for {name}: "{text}" is no number')
    return int(text)
