"""Commands of earlier versions: each says what it is called now, with the arguments that it was given, and does nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from tuneoff.base.commands import command


def _recommend(words: Sequence[str]) -> list[list[str]]:
    """Return a report per folder; the questions are told in one order, and the runs are in its JSON."""
    folders = list(takewhile(lambda word: not word.startswith("-"), words))
    options = [word for word in words[len(folders) :] if word != "--runs" and not word.startswith("--prefer=")]
    if "--prefer" in options:
        at = options.index("--prefer")
        del options[at : at + 2]
    shown = [] if "--json" in options else ["--text"]
    return [["report", *folder, *shown, *options] for folder in ([[one] for one in folders] or [[]])]


RENAMED: Mapping[str, Callable[[Sequence[str]], list[list[str]]]] = {"recommend": _recommend}


def is_now(words: Sequence[str]) -> str | None:
    """Return what arguments of an earlier version are now, as one line; None: they have no such command."""
    name = next((word for word in words if not word.startswith("-")), "")
    if name not in RENAMED:
        return None
    at = list(words).index(name)
    return f"is now: {'; '.join(command(*new) for new in RENAMED[name]([*words[:at], *words[at + 1 :]]))}"
