"""`tuneoff export`: the results as tables for other tools."""

from __future__ import annotations

import argparse

from tuneoff.base.layout import EXPORT
from tuneoff.base.output import write
from tuneoff.cli.folders import add_results, folder_path, newest_folder

NAME = "export"
HELP = "write the results as tables (runs, trials, epochs, metrics, steps, declared) for other tools"
EXAMPLE = "tuneoff export --format csv"
FORMATS = ("csv", "json", "parquet")  # as tuneoff.tell.frames.export has them, without its imports


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="csv",
        help="default: csv; parquet needs pyarrow and is what tuneoff.load reads fastest",
    )
    parser.add_argument("--output", metavar="DIR", type=folder_path, help="folder of the tables; default: DIR/export")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.record.results_folder import read_plan
    from tuneoff.tell.frames.export import export

    results = arguments.results or newest_folder(needs_runs=True)
    plan = read_plan(results)  # a folder that is none must not get tables without rows
    destination = arguments.output or results / EXPORT
    for path in export(results, destination, arguments.format, [run.run_id for run in plan.runs]):
        write(str(path.resolve()))
    return 0
