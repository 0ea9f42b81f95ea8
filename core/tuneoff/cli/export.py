"""`tuneoff export`: the results as tables for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.cli.output import write

NAME = "export"
HELP = "write the results as tables (runs, trials, epochs, metrics, steps, declared) for other tools"
EXAMPLE = "tuneoff export --format csv"
FORMATS = ("csv", "json", "parquet")  # as tuneoff.report.export has them, without its imports


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--format", choices=FORMATS, default="csv", help="default: csv; parquet needs pyarrow")
    parser.add_argument("--output", metavar="DIR", type=Path, help="folder of the tables; default: DIR/export")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.matrix.folder import read_plan
    from tuneoff.report.export import export

    results = arguments.results or newest_folder()
    plan = read_plan(results)  # a folder that is none must not get tables without rows
    run_ids = [run.run_id for run in plan.runs]
    for path in export(results, arguments.output or results / "export", arguments.format, run_ids):
        write(str(path.resolve()))
    return 0
