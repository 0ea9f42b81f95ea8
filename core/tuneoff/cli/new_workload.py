"""`tuneoff new-workload`: write a training of one's own that runs at once, to start from."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.commands import command, install_command, libraries, pip
from tuneoff.base.output import write
from tuneoff.base.packages import installed_version
from tuneoff.cli.folders import make_empty
from tuneoff.errors import ExperimentError, ResultsError

if TYPE_CHECKING:
    from tuneoff.registry import Kind

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".tmpl"
NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
NAME = "new-workload"
HELP = "write your own training to compare frameworks on, with its experiment file: a package or a file"
EXAMPLE = "tuneoff new-workload my-training --output my-training"

LIKE = {  # what each kind is, and the distributions that it needs
    "function": ("a generator that yields its metrics once per epoch", ()),
    "sklearn": ("a class with scikit-learn: data, training, validation, test, state", ("scikit-learn", "threadpoolctl")),
    "torch": ("a class with torch: data, training, validation, test, state", ("torch",)),
    "command": ("a program in any language, here a Python script, which prints its metrics", ()),
}
FRAMEWORKS = "tuneoff[optuna,ray,syne-tune]"  # what the experiment file compares


def camel_case(name: str) -> str:
    """Return `MyName` for `my-name`."""
    return "".join(word.capitalize() for word in name.split("-"))


def check_name(kind: Kind, what: str, name: str, example: str) -> None:
    """Refuse names that make no package, and those of installed plugins of a kind; `what`: how a user calls it ("an adapter").

    Raises:
        ExperimentError: one line.
    """
    from tuneoff.registry import scan

    if not NAME_PATTERN.fullmatch(name):
        rule = f"{what}'s name must be lower-case words of letters and digits joined by hyphens, but got {name!r}"
        raise ExperimentError(f"{rule}; choose one like {example}")
    if name in {plugin.name for plugin in scan(kind)}:
        raise ExperimentError(f"{what} named {name!r} is installed already; choose another name")


def write_templates(
    sources: Sequence[Path], folder: Path, words: Mapping[str, str], moved: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the templates below `sources` into a new or empty folder and return the files; `moved`: which go elsewhere in it.

    Raises:
        ResultsError: the folder is not empty, or cannot be written.
    """
    written = []
    try:
        make_empty(folder, "--output")
        for base, template in [(source, path) for source in sources for path in sorted(source.rglob(f"*{SUFFIX}"))]:
            name = _filled(str(template.relative_to(base)).removesuffix(SUFFIX), words)
            path = folder / (moved or {}).get(name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_filled(template.read_text(), words))
            written.append(path)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be written: {error.strerror}; choose another --output") from error
    return written


def _filled(text: str, words: Mapping[str, str]) -> str:
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the training: lower case, digits, single hyphens")
    kinds = "; ".join(f"{kind}: {about}" for kind, (about, _) in LIKE.items())
    parser.add_argument("--like", choices=LIKE, default="function", help=f"{kinds}; default: function")
    parser.add_argument("--file", action="store_true", help="write one file and its experiment file, not a package")
    parser.add_argument("--output", metavar="DIR", type=Path, help="a new or empty folder; default: NAME in the current one")


def execute(arguments: argparse.Namespace) -> int:
    name, like = arguments.name, arguments.like
    check_name("workload", "a training", name, "my-training")
    module = name.replace("-", "_")
    if module in sys.stdlib_module_names or PathFinder.find_spec(module) is not None:
        raise ExperimentError(f"a module named {module!r} is installed already; choose another name")
    is_package = not arguments.file and like != "command"
    folder = arguments.output or Path(name)
    required = LIKE[like][1]
    target = f"{module}:{'train' if like == 'function' else camel_case(name)}"
    words = {
        "@NAME@": name,
        "@MODULE@": module,
        "@CLASS@": camel_case(name),
        "@OBJECT@": target.partition(":")[2],
        "@WORKLOAD@": name if is_package else target,
        "@REQUIRED@": ", ".join(f'"{package}"' for package in required),
        "@FILE@": f"{name}.yaml",
    }
    sources = [TEMPLATES / "workload" / folder_name for folder_name in (like, *(["package"] if is_package else []))]
    moved = {f"{module}.py": f"src/{module}.py"} if is_package else {}
    for path in write_templates(sources, folder, words, moved):
        write(str(path))
    needed = dict.fromkeys(library for requirement in (FRAMEWORKS, *required) for library in libraries(requirement))
    missing = [library for library in needed if installed_version(re.split(r"[^\w.-]", library)[0]) is None]
    needs = f"it needs: {install_command(*missing)}\n" if missing else ""
    enter = f"cd {shlex.quote(str(folder))}{f' && {pip()} install -e .' if is_package else ''}"
    check, compare = command("check", "--workload", f"{name}.yaml"), command("compare", f"{name}.yaml")
    write(f"\n{needs}run it:\n  {enter}\n  {check}\n  {compare}")
    return 0
