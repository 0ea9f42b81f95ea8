"""Commands that are printed for people to paste: each is made here, quoted for a shell."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

OWN = "tuneoff"
DISTRIBUTIONS = {  # of modules with another name
    "google": "protobuf",
    "pynvml": "nvidia-ml-py",
    "sklearn": "scikit-learn",
}
_EXTRAS = re.compile(rf"{OWN}\[([\w,-]+)\]")
_OF_EXTRA = re.compile(r"(?P<what>.+?); extra == ['\"](?P<extra>[^'\"]+)['\"]")
_PROGRAM = re.compile(rf"(?:(?:'[^']*/|\S*/)?{OWN}'?|(?:'[^']*'|\S+) -m (?:{OWN}|pip install)|pip install) \S")
_SHOWN: ContextVar[Mapping[str, str] | None] = ContextVar("shown", default=None)
QUOTED, _SENTENCE = re.compile("'[^']*'"), re.compile("[.,;:](?: |$)")


def program() -> str:
    """Return how this program was called, where `tuneoff` alone would call another one or none."""
    if _SHOWN.get() is not None:
        return OWN
    called = sys.argv[0]
    if called.endswith(f"{OWN}/__main__.py"):
        return f"{shlex.quote(sys.orig_argv[0])} -m {OWN}"
    if os.path.basename(called) != OWN or not os.path.isfile(called):  # a test, or an embedding program
        return OWN
    located = shutil.which(OWN)
    return OWN if located is not None and os.path.samefile(located, called) else shlex.quote(called)


def command(*words: object) -> str:
    """Return a command of tuneoff."""
    return f"{program()} {shlex.join(map(path_text, words))}"


@contextlib.contextmanager
def printed_as(paths: Mapping[str, str]) -> Iterator[None]:
    """Print commands for somebody elsewhere: of a program `tuneoff`, with other words for these paths."""
    token = _SHOWN.set(paths)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def path_text(path: object) -> str:
    """Return a word of a command, a path as it is printed (see `printed_as`)."""
    return (_SHOWN.get() or {}).get(str(path), str(path))


def install_command(*requirements: str) -> str:
    """Return what installs requirements, or the distributions of modules.

    `tuneoff[extra]` stands for the libraries of that extra: no index has a project of this name, and anybody could register one.
    """
    names = (library for requirement in requirements for library in libraries(requirement))
    return f"{pip()} install {shlex.join(dict.fromkeys(names))}"


def python() -> str:
    """Return the interpreter of this program's environment: `python`, where the shell that called it looks there."""
    return "python" if program() == OWN else shlex.quote(sys.executable)


def pip() -> str:
    """Return the pip of this program's environment."""
    return "pip" if program() == OWN else f"{python()} -m pip"


def libraries(requirement: str) -> Iterator[str]:
    """Yield what a requirement asks an index for; an extra of tuneoff that its metadata do not have is of the checkout."""
    extras = _EXTRAS.fullmatch(requirement)
    if extras is None:
        yield DISTRIBUTIONS.get(requirement, requirement)
        return
    for extra in extras[1].split(","):
        for of_extra in _declared().get(extra, [f".[{extra}]"]):
            yield from libraries(of_extra)


@functools.cache
def _declared() -> dict[str, list[str]]:
    """Return the requirements of each extra of tuneoff, by its metadata."""
    from importlib import metadata  # a third of what a run's process imports, which asks for none

    extras: dict[str, list[str]] = {}
    try:
        declared = metadata.requires(OWN) or ()
    except metadata.PackageNotFoundError:  # a source tree on the path
        declared = ()
    for requirement in declared:
        if of_extra := _OF_EXTRA.fullmatch(requirement):
            extras.setdefault(of_extra["extra"], []).append(of_extra["what"])
    return extras


def is_command(text: str) -> bool:
    """Tell whether a text is a command, and no sentence that begins as one."""
    return _PROGRAM.match(text) is not None and _SENTENCE.search(QUOTED.sub("", text)) is None


def split_command(line: str) -> tuple[str, str]:
    """Return a line up to the colon before the command at its end, and that command; "" for what is not there."""
    if is_command(line.strip()):
        return "", line.strip()
    for colon in re.finditer(": ", line):
        if is_command(line[colon.end() :]):
            return line[: colon.start() + 1], line[colon.end() :]
    return line, ""
