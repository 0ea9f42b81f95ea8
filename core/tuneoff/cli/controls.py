"""`tuneoff controls`: were the adapters of a results folder treated equally? Its runs compared with each other."""

from __future__ import annotations

import argparse

from tuneoff.base.output import write, write_json
from tuneoff.cli.folders import add_results, newest_folder

NAME = "controls"
HELP = "compare the runs of a results folder: equal values of equal configurations, equal quality of equal algorithms, noise"
EXAMPLE = "tuneoff controls"
DIFFERENT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--json", action="store_true", help="write JSON: every answer, every differing value, every interval")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.judge.controls.compute import controls
    from tuneoff.judge.controls.controls_output import lines, to_json
    from tuneoff.judge.results import read_results
    from tuneoff.tell.report.interference import interference, interference_json, interference_lines

    results = arguments.results or newest_folder(needs_runs=True)
    read = read_results(results)
    found, between = controls(read), interference(read)
    code = DIFFERENT if found.contradicts else 0
    if arguments.json:
        answers = {**to_json(found), "interference": interference_json(between)}
        write_json({"results": str(results.resolve()), "exit_code": code, **answers})
    elif found.is_empty:
        write(f"nothing to compare: a control needs two frameworks with sampler fixed or random\n\n{results.resolve()}")
    else:
        write("\n".join([*lines(found), *interference_lines(between), "", str(results.resolve())]))
    return code
