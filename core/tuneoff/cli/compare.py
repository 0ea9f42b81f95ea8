"""`tuneoff compare`: run a whole matrix and end with one table."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tuneoff.base.format import counted
from tuneoff.cli.folders import add_output
from tuneoff.cli.matrix import add_matrix, run_plan
from tuneoff.cli.plan import expected_duration
from tuneoff.cli.report import add_baseline, check_baseline
from tuneoff.cli.selection import add_file, add_overrides, plan_of
from tuneoff.experiment.seeds import seeds_text

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan

NAME = "compare"
HELP = "run every run of a file, with live progress, and print one table, the path of its report and that of the results"
EXAMPLE = "tuneoff compare digits --adapter serial optuna --seeds 0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add_output(parser)
    add_overrides(parser)
    add_baseline(parser)
    parser.add_argument("--no-report", dest="report", action="store_false", help="write no report.html at the end")
    add_matrix(parser)
    parser.add_argument("--json", action="store_true", help="print the result of each run as JSON instead of the table")


def execute(arguments: argparse.Namespace) -> int:
    plan = plan_of(arguments)
    check_baseline(arguments, plan.label_texts.values())
    return run_plan(plan, arguments, notes=lambda *runs: (f"{_able(runs[0])}; {expected_duration(*runs)}",))


def _able(plan: Plan) -> str:
    """Return what a matrix will be able to answer, before it takes its time."""
    from tuneoff.experiment.variants import TASK
    from tuneoff.judge.answers.judging import FEWEST_SEEDS

    added = plan.added_seeds
    seeds = len(plan.seeds)
    runs = f"{counted(plan.totals.runs, 'run')} of {counted(seeds, 'seed')}"
    if added:
        seeds -= len(added)
        runs += f" (seeds {seeds_text(added)} are added after the first run and only describe)"
    if any(TASK in run.spec.experiment.variant for run in plan.counted):
        return f"{runs} in each task, judged over the tasks"
    able = (
        "enough for verdicts"
        if seeds >= FEWEST_SEEDS
        else f"they describe and decide nothing, for a verdict needs {FEWEST_SEEDS}"
    )
    return f"{runs}: {able}"
