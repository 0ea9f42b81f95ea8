"""What a module of this package gives to be a command, and the parser whose errors are one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from tuneoff.base.format import wrapped
from tuneoff.base.output import plain_line

BAD_INPUT = 2


class Command(Protocol):
    """A command: its name, what it does, one example that runs, its arguments, and its action."""

    @property
    def NAME(self) -> str: ...  # noqa: N802

    @property
    def HELP(self) -> str: ...  # noqa: N802

    @property
    def EXAMPLE(self) -> str: ...  # noqa: N802

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments; imports nothing heavy."""

    def execute(self, arguments: argparse.Namespace) -> int:
        """Do it and return the exit code."""


class _Help(argparse.HelpFormatter):
    """Keeps the lines of descriptions and examples, and breaks those that are too long."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(wrapped(text.splitlines(), width))


class OneLineParser(argparse.ArgumentParser):
    """Wrong arguments are one line on stderr, like every other bad input; options are not abbreviated."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{plain_line(f'tuneoff: {message}; see: {self.prog} --help')}\n")


def build_parser(commands: Sequence[Command], version: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Return the parser of all commands; the chosen one's `execute` is in the namespace as `execute`."""
    parser = OneLineParser(prog="tuneoff", description=description, epilog=epilog, formatter_class=_Help)
    parser.add_argument("--version", action="version", version=f"tuneoff {version}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks and debug messages on stderr")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True, parser_class=OneLineParser
    )
    for command in commands:
        sub = subparsers.add_parser(
            command.NAME,
            help=command.HELP,
            description=f"{command.HELP[0].upper()}{command.HELP[1:]}.",
            epilog=f"example:\n  {command.EXAMPLE}",
            formatter_class=_Help,
        )
        # without a default, or it would undo a --debug that stands before the command
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.add_arguments(sub)
        sub.set_defaults(execute=command.execute)
    return parser


def script_name() -> str:
    """Return how this program was called, for hints that can be copied."""
    return "python -m tuneoff" if sys.argv[0].endswith("__main__.py") else "tuneoff"
