"""`tuneoff compare`: run a whole matrix and end with one table."""

from __future__ import annotations

import argparse

from tuneoff.cli.folders import add_output
from tuneoff.cli.matrix import FLAGGED, add_verbose, run_plan
from tuneoff.cli.metrics_port import add_metrics_port
from tuneoff.cli.selection import add_file, add_overrides, overridden_plan

NAME = "compare"
HELP = "run every run of a file, with live progress, and print one table, the path of its report and that of the results"
EXAMPLE = "tuneoff compare benchmarks/digits.yaml --adapter serial optuna --trials 4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_output(parser)
    parser.add_argument(
        "--retry",
        choices=[FLAGGED],
        help="resume, and repeat whole blocks (all runs of a seed) that hold a run with a flag of the machine; decided "
        "blind to results, and the earlier executions are kept and counted",
    )
    add_overrides(parser)
    add_metrics_port(parser)
    parser.add_argument("--no-report", dest="report", action="store_false", help="write no report.html at the end")
    add_verbose(parser)
    parser.add_argument("--json", action="store_true", help="write what each run came to as JSON, instead of the table")


def execute(arguments: argparse.Namespace) -> int:
    plan = overridden_plan(arguments.file, adapters=arguments.adapters, trials=arguments.trials, seeds=arguments.seeds)
    return run_plan(plan, arguments)
