"""Completion by a shell, which asks `tuneoff` itself: by argcomplete, imported for nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from tuneoff.cli.command import OneLineParser
from tuneoff.registry import Kind, scan

Completer = Callable[..., Iterable[str]]


def complete(parser: OneLineParser) -> None:
    """Answer the shell, and end the process; options are named where a hyphen is written."""
    import argcomplete

    for command, sub in parser.subcommands.items():
        for action in sub._actions:
            completer = _completer(command, action)
            if completer is not None:
                action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _completer(command: str, action: argparse.Action) -> Completer | None:
    """Return what completes an argument, where it is none of its choices and not any file."""
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    if action.dest in ("adapter", "adapters") or (command, action.dest) == ("adapters", "names"):
        return _names("adapter")
    if (command, action.dest) == ("workloads", "names"):
        return _names("workload")
    if action.metavar == "DIR":
        return DirectoriesCompleter()
    return FilesCompleter(("yaml", "yml")) if action.dest in ("file", "workload") else None


def _names(kind: Kind) -> Completer:
    """Return what completes the names of installed plugins, also behind a comma; it imports none of them."""

    def complete_name(prefix: str, **_: Any) -> list[str]:
        before, comma, _begun = prefix.rpartition(",")
        return [f"{before}{comma}{plugin.name}" for plugin in scan(kind)]

    return complete_name
