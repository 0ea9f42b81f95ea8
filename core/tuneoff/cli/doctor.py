"""`tuneoff doctor`: what this machine and this installation can run, one line per check."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tuneoff.base.output import columns, one_line, write, write_json

NAME = "doctor"
HELP = "check Python, machine, frameworks, conflicts, data and the results folder"
EXAMPLE = "tuneoff doctor benchmarks/digits.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        nargs="?",
        help="also check what this experiment file needs: its frameworks, and its data (fetched where they are missing)",
    )
    parser.add_argument("--image", metavar="NAME", help="also run an image of Katib's trials, and check that it has this tuneoff")
    parser.add_argument("--json", action="store_true", help="write JSON: a list with one object per check")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.cli.checks import all_checks

    checks = all_checks(arguments.file, arguments.image)
    if arguments.json:
        write_json([asdict(check) for check in checks])
    else:
        write(columns(("level", "check", ""), [(check.level, check.name, one_line(check.text)) for check in checks]))
    return next((check.exit_code for check in checks if check.level == "fail"), 0)
