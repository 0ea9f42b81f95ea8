"""Commands of earlier versions: each says what it is called now, with the arguments that it was given, and does nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from tuneoff.base.commands import command
from tuneoff.cli.command import ListedAction, OneLineParser


def _after(*now: str) -> Callable[[Sequence[str]], list[list[str]]]:
    """Return what puts the arguments behind other words."""
    return lambda words: [[*now, *words]]


def _schema(words: Sequence[str]) -> list[list[str]]:
    kind = next((kind for kind in ("run", "prices") if f"--{kind}" in words), "experiment")
    return [["explain", "--schema", kind, *(word for word in words if word not in ("--run", "--prices"))]]


def _status(words: Sequence[str]) -> list[list[str]]:
    """Return one look; of two the one that it showed."""
    look = "--tables" if "--tables" in words and "--json" not in words else "--declared" if "--declared" in words else "--runs"
    return [["watch", look, *(word for word in words if word not in ("--tables", "--declared"))]]


def _controls(words: Sequence[str]) -> list[list[str]]:
    options = [word for word in words if word.startswith("-")]
    return [["check", *options, "--controls", *(word for word in words if word not in options)]]


def _verify_space(words: Sequence[str]) -> list[list[str]]:
    """Return a check of the file, with the adapters named first."""
    parser = OneLineParser(prog="tuneoff verify-space", add_help=False)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--adapter", action=ListedAction)
    for name in ("draws", "seed", "timeout"):
        parser.add_argument(f"--{name}")
    parsed, flags = parser.parse_known_args(words)
    options = [word for name in ("draws", "seed", "timeout") if (value := getattr(parsed, name)) for word in (f"--{name}", value)]
    return [["check", *(parsed.adapter or ()), "--space", *filter(None, [parsed.file]), *options, *flags]]


def _recommend(words: Sequence[str]) -> list[list[str]]:
    """Return a report per folder; the questions are told in one order, and the runs are in its JSON."""
    folders = list(takewhile(lambda word: not word.startswith("-"), words))
    options = [word for word in words[len(folders) :] if word != "--runs" and not word.startswith("--prefer=")]
    if "--prefer" in options:
        at = options.index("--prefer")
        del options[at : at + 2]
    form = [] if "--json" in options else ["--text"]
    return [["report", *folder, *form, *options] for folder in ([[path] for path in folders] or [[]])]


RENAMED: Mapping[str, Callable[[Sequence[str]], list[list[str]]]] = {
    "adapters": _after("list", "adapters"),
    "workloads": _after("list", "workloads"),
    "schema": _schema,
    "status": _status,
    "serve": _after("watch", "--serve"),
    "controls": _controls,
    "recommend": _recommend,
    "verify-space": _verify_space,
}


def is_now(words: Sequence[str]) -> str | None:
    """Return what arguments of an earlier version are now, as one line; None: they have no such command."""
    name = next((word for word in words if not word.startswith("-")), "")
    if name not in RENAMED:
        return None
    at = list(words).index(name)
    return f"is now: {'; '.join(command(*new) for new in RENAMED[name]([*words[:at], *words[at + 1 :]]))}"
