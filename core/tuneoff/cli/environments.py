"""`tuneoff environments`: the environments of adapters that are named NAME==VERSION."""

from __future__ import annotations

import argparse
from pathlib import Path

from tuneoff.base.output import columns, note, write, write_json
from tuneoff.base.targets import unknown_name
from tuneoff.cli.command import ListedAction
from tuneoff.cli.selection import add_adapters, overridden_plan
from tuneoff.errors import UnknownNameError

NAME = "environments"
HELP = "list the environments of adapters named NAME==VERSION with their sizes, make those of a file, or remove some"
EXAMPLE = "tuneoff environments"
ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--make", metavar="FILE", type=Path, help="make those that the runs of this file need; needs a network")
    add_adapters(parser, "with --make: only these frameworks, or others, e.g. optuna==4.5.0; default: the file's")
    parser.add_argument("--remove", metavar="ID", action=ListedAction, help="remove these, by their id; all: every one")
    parser.add_argument("--json", action="store_true", help="write the list as JSON, with the versions of all packages")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.base.json_values import plain
    from tuneoff.experiment.environments import cache
    from tuneoff.run.environments import MEGABYTE, all_built, ready, remove

    folders = {folder.name: folder for folder, _ in all_built()}
    for name in folders if arguments.remove == [ALL] else arguments.remove or ():
        if name not in folders:
            raise UnknownNameError(unknown_name("environment", name, folders))
        remove(folders[name])
    if arguments.make is not None:
        with ready((run.spec for run in overridden_plan(arguments.make, adapters=arguments.adapters).to_run), note):
            pass
    listing = all_built()
    if arguments.json:
        write_json([{"id": folder.name, "is_complete": built is not None, "made": plain(built)} for folder, built in listing])
        return 0
    rows = []
    for folder, built in listing:
        if built is None:
            rows.append((folder.name, "", "not complete: made anew when it is needed", "", ""))
            continue
        sizes = f"{built.bytes / MEGABYTE:.0f}", f"{built.linked_bytes / MEGABYTE:.0f}"
        rows.append((folder.name, built.recipe.python_version, ", ".join(built.recipe.requirements), *sizes))
    table = columns(("id", "Python", "made of", "MB", "shared"), rows) if rows else "no environment is there"
    write(f"{table}\n\n{cache()}")
    return 0
