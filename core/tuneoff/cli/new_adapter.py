"""`tuneoff new-adapter`: write a working plugin package to start from."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from tuneoff.base.output import write
from tuneoff.cli.from_templates import TEMPLATES, camel_case, write_templates
from tuneoff.errors import ExperimentError

NAME = "new-adapter"
HELP = "write a plugin package: an ask-and-tell adapter, its entry point and its tests"
EXAMPLE = "tuneoff new-adapter my-framework --output /tmp/tuneoff-my-framework"

NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the adapter: lower case, digits, single hyphens")
    parser.add_argument("--output", metavar="DIR", type=Path, help="a new folder; default: tuneoff-NAME in the current one")


def execute(arguments: argparse.Namespace) -> int:
    folder = arguments.output or Path(f"tuneoff-{arguments.name}")
    check_name(arguments.name)
    words = _words(arguments.name)
    for path in write_templates([TEMPLATES / "adapter"], folder, words):
        write(str(path))
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


def _words(name: str) -> dict[str, str]:
    return {
        "@NAME@": name,
        "@MODULE@": f"tuneoff_{name.replace('-', '_')}",
        "@CLASS@": f"{camel_case(name)}Adapter",
    }
