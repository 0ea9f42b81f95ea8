"""`tuneoff controls`: were the adapters of a results folder treated equally? Its runs compared with each other."""

from __future__ import annotations

import argparse

from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.cli.output import write, write_json

NAME = "controls"
HELP = "compare the runs of a results folder: equal values of equal configurations, equal quality of equal algorithms, noise"
EXAMPLE = "tuneoff controls"
DIFFERENT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--json", action="store_true", help="write JSON: every answer, every differing value, every interval")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.controls.all import controls
    from tuneoff.controls.text import lines
    from tuneoff.controls.values import to_json
    from tuneoff.errors import MissingPackageError
    from tuneoff.matrix.folder import read_plan
    from tuneoff.records.store import read_runs
    from tuneoff.report.interference import interference, interference_json, interference_lines
    from tuneoff.report.order import in_file_order

    results = arguments.results or newest_folder()
    plan = read_plan(results)
    records, planned = list(read_runs(results)), in_file_order(plan)
    found = controls(records, planned, plan.analysis)
    between = interference(records, planned)
    code = DIFFERENT if found.contradicts else MissingPackageError.exit_code if found.lacking else 0
    if arguments.json:
        answers = {**to_json(found), "interference": interference_json(between)}
        write_json({"results": str(results.resolve()), "exit_code": code, **answers})
    elif found.is_empty:
        write(f"nothing to compare: a control needs two adapters with sampler fixed or random\n\n{results.resolve()}")
    else:
        write("\n".join([*lines(found), *interference_lines(between), "", str(results.resolve())]))
    return code
