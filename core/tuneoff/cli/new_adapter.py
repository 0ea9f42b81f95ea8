"""`tuneoff new-adapter`: write a working plugin package to start from."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from tuneoff.base.commands import command, pip, python
from tuneoff.base.output import write
from tuneoff.cli.new_workload import TEMPLATES, camel_case, check_name, write_templates

NAME = "new-adapter"
HELP = "write a plugin package: an adapter that works, its entry point and its tests"
LIKE = {  # what each kind is of
    "ask-tell": "a library that proposes configurations and receives results",
    "runs-trials": "a framework that runs its trials itself, in processes of its own",
}
EXAMPLE = "tuneoff new-adapter my-framework --output tuneoff-my-framework"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the adapter: lower case, digits, single hyphens")
    kinds = "; ".join(f"{kind}: {about}" for kind, about in LIKE.items())
    parser.add_argument("--like", choices=LIKE, default="ask-tell", help=f"{kinds}; default: ask-tell")
    parser.add_argument("--output", metavar="DIR", type=Path, help="a new folder; default: tuneoff-NAME in the current one")


def execute(arguments: argparse.Namespace) -> int:
    folder = arguments.output or Path(f"tuneoff-{arguments.name}")
    check_name("adapter", "an adapter", arguments.name, "my-framework")
    words = {
        "@NAME@": arguments.name,
        "@MODULE@": f"tuneoff_{arguments.name.replace('-', '_')}",
        "@CLASS@": f"{camel_case(arguments.name)}Adapter",
    }
    for path in write_templates([TEMPLATES / "adapter" / "package", TEMPLATES / "adapter" / arguments.like], folder, words):
        write(str(path))
    quoted, name = shlex.quote(str(folder)), arguments.name
    write(f"\ninstall and try it:\n  {pip()} install -e {quoted}\n  {python()} -m pytest {quoted}\n  {command('check', name)}")
    target = f"{words['@MODULE@']}:{words['@CLASS@']}"
    write(f"without installing:\n  PYTHONPATH={shlex.quote(str(folder / 'src'))} {command('check', target)}")
    return 0
