"""`tuneoff export`: the results as tables for other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.cli.output import write

NAME = "export"
HELP = "write the results as tables (runs, trials, epochs, metrics, steps, declared), or incumbents, for other tools"
EXAMPLE = "tuneoff export --format csv"
FORMATS = ("csv", "json", "parquet", "ioh")  # tables, as tuneoff.report.export has them, without its imports; incumbents


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="csv",
        help="default: csv; parquet needs pyarrow and is what tuneoff.load reads fastest; ioh: incumbents for IOHprofiler",
    )
    parser.add_argument("--output", metavar="DIR", type=Path, help="folder of the tables; default: DIR/export")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.matrix.folder import read_plan
    from tuneoff.report.export import export

    results = arguments.results or newest_folder()
    plan = read_plan(results)  # a folder that is none must not get tables without rows
    destination = arguments.output or results / "export"
    if arguments.format == "ioh":
        from tuneoff.frames.ioh import write_ioh

        paths = write_ioh(results, destination, plan)
    else:
        paths = export(results, destination, arguments.format, [run.run_id for run in plan.runs])
    for path in paths:
        write(str(path.resolve()))
    return 0
