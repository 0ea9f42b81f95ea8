"""`tuneoff diff`: two results folders of the same experiments, and what changed between them beyond noise."""

from __future__ import annotations

import argparse

from tuneoff.base.output import write, write_json
from tuneoff.cli.folders import folder_path, newest_two
from tuneoff.cli.report import check_baseline
from tuneoff.errors import NOT_KNOWN, ExperimentError

NAME = "diff"
HELP = "compare two results folders of the same experiments, old and new: what changed beyond noise; exit code 1 if anything did"
EXAMPLE = "tuneoff diff"
CHANGED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        metavar="DIR",
        type=folder_path,
        nargs="*",
        help="two results folders, the old one first; default: the newest under results/, and the last before it of that file",
    )
    parser.add_argument(
        "--baseline", metavar="NAME", help="adapter whose change, as one of the machine, is taken off that of each other"
    )
    parser.add_argument(
        "--json", action="store_true", help="write JSON: every question with each pair of seeds, and all that differs"
    )


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.judge.comparison.diff import compared
    from tuneoff.judge.comparison.diff_output import lines, to_json
    from tuneoff.judge.results import read_results

    if len(arguments.results) not in (0, 2):
        raise ExperimentError(f"two results folders are needed, or none for the two newest, but got {len(arguments.results)}")
    old, new = map(read_results, arguments.results or newest_two())
    check_baseline(arguments, (old.plan.label_texts[run.label] for run in old.planned if run.spec.replicate == 0))
    difference = compared(old, new, arguments.baseline)
    code = CHANGED if difference.has_changed else 0 if difference.is_judged else NOT_KNOWN
    if arguments.json:
        write_json({"exit_code": code, **to_json(difference)})
    else:
        write("\n".join(lines(difference)))
    return code
