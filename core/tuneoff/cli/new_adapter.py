"""`tuneoff new-adapter`: write a working plugin package to start from."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from tuneoff.base.output import write
from tuneoff.errors import ExperimentError, ResultsError

NAME = "new-adapter"
HELP = "write a plugin package: an ask-and-tell adapter, its entry point and its tests"
EXAMPLE = "tuneoff new-adapter my-framework --output /tmp/tuneoff-my-framework"

NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TEMPLATES = Path(__file__).parent / "templates" / "adapter"
SUFFIX = ".tmpl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the adapter: lower case, digits, single hyphens")
    parser.add_argument("--output", metavar="DIR", type=Path, help="a new folder; default: tuneoff-NAME in the current one")


def execute(arguments: argparse.Namespace) -> int:
    folder = arguments.output or Path(f"tuneoff-{arguments.name}")
    check_name(arguments.name)
    for path in write_package(arguments.name, folder):
        write(str(path))
    words = _words(arguments.name)
    write(f"\ninstall and try it:\n  pip install -e {folder}\n  python -m pytest {folder}\n  tuneoff check {arguments.name}")
    write(f"without installing:\n  PYTHONPATH={folder}/src tuneoff check {words['@MODULE@']}:{words['@CLASS@']}")
    return 0


def check_name(name: str) -> None:
    """Refuse names that make no package, and those of installed adapters.

    Raises:
        ExperimentError: one line.
    """
    from tuneoff.registry import scan

    if not NAME_PATTERN.fullmatch(name):
        raise ExperimentError(
            f"an adapter's name must be lower-case words of letters and digits joined by hyphens, but got {name!r}; "
            "choose one like my-framework"
        )
    if name in {plugin.name for plugin in scan("adapter")}:
        raise ExperimentError(f"an adapter named {name!r} is installed already; choose another name")


def write_package(name: str, folder: Path) -> list[Path]:
    """Write the package of an adapter into a new or empty folder and return its files.

    Raises:
        ResultsError: the folder is not empty, or cannot be written.
    """
    words = _words(name)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ResultsError(f"{folder} must be a new or empty folder, but has files; choose another --output")
        for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
            path = folder / _filled(str(template.relative_to(TEMPLATES)).removesuffix(SUFFIX), words)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_filled(template.read_text(), words))
            written.append(path)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be written: {error.strerror}; choose another --output") from error
    return written


def _words(name: str) -> dict[str, str]:
    return {
        "@NAME@": name,
        "@MODULE@": f"tuneoff_{name.replace('-', '_')}",
        "@CLASS@": "".join(word.capitalize() for word in name.split("-")) + "Adapter",
    }


def _filled(text: str, words: dict[str, str]) -> str:
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text
