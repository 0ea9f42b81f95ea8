"""`tuneoff list`: adapters, workloads, platforms and experiments that are here; some by name, with all that they declare."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from tuneoff.base.output import columns, write, write_json
from tuneoff.base.packages import experiments as installed
from tuneoff.base.targets import unknown_name
from tuneoff.cli import adapters, workloads
from tuneoff.errors import PluginError, UnknownNameError

NAME = "list"
HELP = "list adapters (frameworks), workloads, platforms or experiments; with names, also what is not offered and why, or options"
EXAMPLE = "tuneoff list adapters serial"
Listed = tuple[list[dict[str, Any]], str, list[str]]  # JSON values of each, the text, and what is broken of those that are named


def platforms(names: Sequence[str]) -> Listed:
    """Return the platforms, installed ones and adapters' own: what each lacks here, and its adapters."""
    from tuneoff.registry import list_adapters, list_platforms

    rows: dict[str, dict[str, Any]] = {}
    for platform in list_platforms():
        rows[platform.plugin.name] = {"name": platform.plugin.name, "text": platform.text, "adapters": []}
    for listing in list_adapters():
        for name in listing.platforms:
            row = rows.setdefault(name, {"name": name, "text": "", "adapters": []})
            row["adapters"].append(listing.plugin.name)
    selected = [rows[name] for name in _selected("platform", names, rows)]
    cells = [(row["name"], " ".join(row["adapters"]) or "-", row["text"]) for row in selected]
    return selected, columns(("platform", "adapters", ""), cells), []


def experiments(names: Sequence[str]) -> Listed:
    """Return the experiments that come with tuneoff, each with its file's question and path; named, with all that it says."""
    paths = installed()
    entries = []
    for name in _selected("experiment", names, paths):
        lines = takewhile(lambda line: line.startswith("#"), paths[name].read_text(encoding="utf-8").splitlines())
        comment = [line.removeprefix("#").strip() for line in lines]
        question = re.split(r"(?<=[.?]) ", " ".join(comment))[0]
        entries.append({"name": name, "text": "\n".join(comment) if names else question, "path": str(paths[name])})
    if names:
        return entries, "\n\n".join(f"{row['name']}: {row['text']}\nFile: {row['path']}" for row in entries), []
    return entries, columns(("experiment", ""), [(row["name"], row["text"]) for row in entries]), []


def _selected(kind: str, names: Sequence[str], available: Mapping[str, object]) -> Sequence[str]:
    for name in names:
        if name not in available:
            raise UnknownNameError(unknown_name(kind, name, available))
    return names or list(available)


KINDS: Mapping[str, Callable[[Sequence[str]], Listed]] = {
    "adapters": adapters.listed,
    "workloads": workloads.listed,
    "platforms": platforms,
    "experiments": experiments,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=", ".join(KINDS))
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="only these, adapters and workloads each with all that it declares"
    )
    parser.add_argument("--json", action="store_true", help="write JSON: a list with one object each")


def execute(arguments: argparse.Namespace) -> int:
    entries, text, broken = KINDS[arguments.kind](list(dict.fromkeys(arguments.names)))
    if arguments.json:
        write_json(entries)
    elif text:
        write(text)
    if broken:  # in the list of all of them a broken one is a line
        raise PluginError("; ".join(broken))
    return 0
