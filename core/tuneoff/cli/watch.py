"""`tuneoff watch`: the live display of a matrix that another process runs."""

from __future__ import annotations

import argparse
import sys

from tuneoff.base.output import plain_line, write, write_json
from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.errors import ExperimentError

NAME = "watch"
HELP = "show a matrix live while another process runs it, until it ends; nothing is written to the folder"
EXAMPLE = "tuneoff watch --once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--once", action="store_true", help="show where it stands now as text, and end with exit code 0")
    parser.add_argument("--json", action="store_true", help="with --once: write JSON")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.tell.live import sentences
    from tuneoff.tell.live.display import watch
    from tuneoff.tell.live.sentences import to_json
    from tuneoff.tell.live.watcher import Watcher

    if arguments.json and not arguments.once:
        raise ExperimentError("`--json` needs `--once`: it is the state at one moment; add --once")
    watcher = Watcher(arguments.results or newest_folder())
    if not arguments.once:
        return watch(watcher, sys.stdout)
    state = watcher.look()
    if arguments.json:
        write_json(to_json(state))
    else:
        write("\n".join(plain_line(line) for line in sentences.lines(state)))
    return 0
