"""The entry point: arguments, errors as one line, exit codes."""

from __future__ import annotations

import argparse
import functools
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, TextIO, cast

import tuneoff
from tuneoff.base.current_folder import current_folder_problem
from tuneoff.base.output import note, plain_line
from tuneoff.cli.command import CliCommand, OneLineParser, added_commands, build_parser, complete
from tuneoff.errors import NOT_KNOWN, ResultsError, TuneoffError

COMMANDS = (  # the modules of this folder, but for `list`, whose module is `listing`
    *("list", "explain", "doctor", "plan", "run", "compare", "watch", "report", "diff", "check", "verify", "export", "bundle"),
    *("reproduce", "environments", "new-adapter", "new-workload"),
)
DESCRIPTION = (
    "Compare hyperparameter-optimization frameworks: each is driven through one lifecycle, runs the same workload, "
    "and leaves results in one schema."
)
EXIT_CODES = {
    0: "every planned run is done, or was skipped for a stated reason",
    1: "a run failed or timed out; or `check`, `verify`, `bundle`, `reproduce` or a command of another package objects; `diff` "
    "found a change; nothing that was measured meets the filters of `report`",
    2: "bad input: arguments, experiment file, names, values",
    3: "a package is missing, or its version does not fit",
    4: "data are missing or corrupted",
    5: "the results folder or the output cannot be read or written, or has another format version",
    6: "a plugin is broken",
    NOT_KNOWN: "inconclusive: `reproduce` showed neither equality nor a difference, or `diff` could judge "
    "nothing; `check` could not test what was asked for, and nothing failed; `verify` or `check --space` had nothing to check",
    70: "a bug in tuneoff; the line says where its traceback is",
    130: "interrupted; the last line is the command to continue",
    141: "the reader of the output closed it",
}
EXAMPLE = "tuneoff compare digits"
COMPLETION = 'eval "$(register-python-argcomplete tuneoff)"'
INTERNAL, INTERRUPTED, BROKEN_PIPE = 70, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; `argv` are the arguments without the program's name."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a test's capture has no such method
            stream.reconfigure(errors="backslashreplace")
    debug = False
    try:
        if "_ARGCOMPLETE" in os.environ:  # a shell asks
            complete(_parser(all_commands()))
        arguments = _parse(argv)
        if isinstance(arguments, int):
            return arguments
        debug = arguments.debug
        set_up(debug)
        return int(arguments.execute(arguments))
    except TuneoffError as error:
        if debug:
            traceback.print_exc()
        note(f"tuneoff: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        note("tuneoff: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as error:  # the last resort: a user never sees a traceback
        if debug:
            traceback.print_exc()
        if isinstance(error, OSError) and (problem := current_folder_problem()) is not None:
            note(f"tuneoff: {problem}")
            return ResultsError.exit_code
        if debug:
            return INTERNAL
        text = f"{type(error).__name__}: {error}"
        note(f"tuneoff: a fault of tuneoff itself: {text}; please report it with the traceback in {save_traceback(error)}")
        return INTERNAL
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # what it holds is lost; or the interpreter's last flush would fail, and change the exit code to 120
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _parse(argv: Sequence[str] | None) -> argparse.Namespace | int:
    """Return the arguments, or the exit code where the parser has already answered (--help, --version, an error)."""
    if argv is None:
        argv, sys.argv = sys.argv[1:], sys.argv[:1]  # they are none of a plugin's that parses its own
    words = [argument for argument in argv if argument != "--debug"]
    if words[:1] == ["help"]:
        argv = words = [*words[1:2], "--help"]
    try:
        word = next((argument for argument in argv if not argument.startswith("-")), "")
        if word not in COMMANDS:
            commands = all_commands(word)
        else:  # alone, unless the help of all of them may be asked for
            commands = tuple(map(core_command, [word] if words[0] == word else COMMANDS))
        arguments: argparse.Namespace = _parser(commands).parse_args(argv)
    except SystemExit as end:
        code: Any = end.code
        return code if isinstance(code, int) else 0
    arguments.argv = list(argv)
    return arguments


def core_command(name: str) -> CliCommand:
    """Import and return a command of this package."""
    command: Any = importlib.import_module(f"tuneoff.cli.{'listing' if name == 'list' else name.replace('-', '_')}")
    return cast(CliCommand, command)


def all_commands(word: str = "") -> tuple[CliCommand, ...]:
    """Return core's commands and those that installed packages add.

    Raises:
        PluginError: the one that is asked for is broken.
    """
    return (*map(core_command, COMMANDS), *added_commands(word))


@functools.cache
def _parser(commands: tuple[CliCommand, ...]) -> OneLineParser:
    """Return the parser of these commands, made once; it keeps nothing of what it reads."""
    codes = "\n".join(f"  {code:<5}{meaning}" for code, meaning in EXIT_CODES.items())
    epilog = f"exit codes:\n{codes}\n\ncompletion in bash and zsh:\n  {COMPLETION}\n\nexample:\n  {EXAMPLE}"
    return build_parser(commands, tuneoff.__version__, DESCRIPTION, epilog)


def _open_standard_streams() -> None:
    """Open what the caller closed (`>&-`) on nothing: else the next file that is opened has its number, and is written to."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor == number:  # and so the children's
                os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, "r" if number == 0 else "w", closefd=False))


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to whatever `sys.stderr` is at the moment: the live display replaces it while it is shown."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class _OneLine(logging.Formatter):
    """Each message is one line, whatever text of a user or of a file is in it."""

    def format(self, record: logging.LogRecord) -> str:
        return plain_line(super().format(record))


def set_up(debug: bool) -> None:
    """Send messages of tuneoff to standard error: warnings, or everything with `debug`."""
    logger, handler = logging.getLogger("tuneoff"), _StandardError()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s") if debug else _OneLine("tuneoff: %(message)s"))
    logger.handlers = [*(other for other in logger.handlers if not isinstance(other, _StandardError)), handler]
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)


def save_traceback(error: BaseException) -> str:
    """Write the traceback to a new file and return its path, or why there is none."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile("w", prefix="tuneoff-fault-", suffix=".txt", delete=False) as file:
            file.writelines(traceback.format_exception(error))
    except OSError as problem:
        return f"nowhere ({problem.strerror}); use --debug"
    return file.name
