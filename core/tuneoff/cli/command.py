"""What a module gives to be a command, of this package or of another, and the parser whose errors are one line.

Completion by a shell asks `tuneoff` itself, by argcomplete, imported for nothing else.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, Protocol, runtime_checkable

from tuneoff.base.commands import command as printed_command
from tuneoff.base.format import wrapped
from tuneoff.base.output import note, plain_line
from tuneoff.base.targets import nearest
from tuneoff.errors import PluginError

BAD_INPUT = 2
EARLIER = {  # commands of earlier commits, and what they are now
    "adapters": "list adapters",
    "workloads": "list workloads",
    "schema": "explain --schema",
    "status": "watch --runs",
    "serve": "watch --serve",
    "controls": "check --controls",
    "recommend": "report --text",
    "verify-space": "check --space",
}
Completer = Callable[..., Iterable[str]]


@runtime_checkable
class CliCommand(Protocol):
    """A command: its name, what it does, one example that runs, its arguments, and its action.

    An installed package adds one by an entry point of the group `tuneoff.commands`: its name, and the module.
    """

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


def added_commands(word: str) -> Iterator[CliCommand]:
    """Yield the commands that installed packages add, the one that is asked for alone; a broken one is a line, and left out.

    Raises:
        PluginError: the one that is asked for is broken.
    """
    from tuneoff.registry import added_command, scan

    names = dict.fromkeys(plugin.name for plugin in scan("command"))
    for name in [word] if word in names else names:
        try:
            command = added_command(name)
            if not isinstance(command, CliCommand) or name != command.NAME:
                raise PluginError(f"command {name!r} must have NAME, HELP, EXAMPLE, add_arguments and execute, but has not")
        except PluginError as error:
            if name == word:
                raise
            note(f"tuneoff: {error}")
        else:
            yield command


class _Help(argparse.HelpFormatter):
    """Keeps the lines of descriptions and examples, and breaks those that are too long."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(wrapped(text.splitlines(), width))


class ListedAction(argparse.Action):
    """An option with a list, by blanks or commas, that may be given again."""

    def __init__(self, option_strings: Sequence[str], dest: str, **keywords: Any) -> None:
        self._convert: Callable[[str], Any] = keywords.pop("type", None) or str
        super().__init__(option_strings, dest, nargs="+", **keywords)

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Any = None) -> None:
        try:
            converted = [self._convert(part) for part in re.split(r" *, *| +", " ".join(values))]
        except ValueError as error:
            raise argparse.ArgumentError(self, f"invalid {self._convert.__name__} value: {' '.join(values)!r}") from error
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), *converted])


class OneLineParser(argparse.ArgumentParser):
    """Wrong arguments are one line on stderr, like every other bad input; options are not abbreviated."""

    subcommands: Mapping[str, OneLineParser] = {}

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, rest = self.parse_known_args(args, namespace)
        if rest:
            self.subcommands.get(getattr(parsed, "command", ""), self)._refuse(rest)
        return parsed

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        return super().parse_known_args(self._tidied(sys.argv[1:] if args is None else args), namespace)

    def _tidied(self, arguments: Sequence[str]) -> list[str]:
        """Refuse what is given twice and would be lost, and move the FILE before a list that would swallow it."""
        takes_file = any(action.dest == "file" and not action.option_strings for action in self._actions)
        files, others = list[str](), list[str]()
        last: argparse.Action | None = None
        seen = set[str]()
        for argument in arguments:
            if argument.startswith("-"):
                last = self._option_string_actions.get(argument.partition("=")[0])
                if isinstance(last, argparse._StoreAction) and last.dest in seen:
                    self.error(f"{argument.partition('=')[0]} may be given once, but is given twice")
                seen.update([last.dest] if last is not None else [])
            is_swallowed = takes_file and isinstance(last, ListedAction) and argument.endswith((".yaml", ".yml"))
            (files if is_swallowed else others).append(argument)
        return files + others

    def _refuse(self, rest: Sequence[str]) -> NoReturn:
        unknown = next((argument for argument in rest if argument.startswith("-")), rest[0]).partition("=")[0]
        self.error(f"unrecognized arguments: {' '.join(rest)}{nearest(unknown, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            now = EARLIER.get(value)
            hint = (
                f", which is now: {printed_command(*now.split())}"
                if now
                else f"{nearest(value, choices)}; known: {', '.join(choices)}"
            )
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def error(self, message: str) -> NoReturn:
        help_command = printed_command(*self.prog.split()[1:], "--help")
        self.exit(BAD_INPUT, f"{plain_line(f'tuneoff: {message}; see: {help_command}')}\n")


def build_parser(commands: Sequence[CliCommand], version: str, description: str, epilog: str) -> OneLineParser:
    """Return the parser of all commands; the chosen one's `execute` is in the namespace as `execute`."""
    parser = OneLineParser(prog="tuneoff", description=description, epilog=epilog, formatter_class=_Help)
    parser.add_argument("--version", action="version", version=f"tuneoff {version}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks and debug messages on stderr")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True, parser_class=OneLineParser
    )
    parser.subcommands = subparsers.choices
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


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what reads an argument that is a whole number in these bounds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < least or (most is not None and int(text) > most):
            bounds = f"from {least}" + (f" to {most}" if most is not None else "")
            raise argparse.ArgumentTypeError(f"must be a whole number {bounds}, but got {text!r}")
        return int(text)

    return read


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

    if action.dest in ("adapter", "adapters"):
        return _names("adapter")
    if (command, action.dest) == ("list", "names"):
        return _names(None)
    if action.metavar == "DIR":
        return DirectoriesCompleter()
    return FilesCompleter(("yaml", "yml")) if action.dest in ("file", "workload", "space") else None


def _names(kind: Literal["adapter"] | None) -> Completer:
    """Return what completes the names of installed plugins, also behind a comma; it imports none of them. None: of KIND."""
    from tuneoff.registry import scan

    kinds: Mapping[str, Literal["adapter", "workload"]] = {"adapters": "adapter", "workloads": "workload"}

    def complete_name(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        before, comma, _begun = prefix.rpartition(",")
        of = kind or kinds.get(getattr(parsed_args, "kind", None) or "")
        return [f"{before}{comma}{plugin.name}" for plugin in (scan(of) if of is not None else ())]

    return complete_name
