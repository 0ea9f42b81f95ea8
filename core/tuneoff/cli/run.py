"""`tuneoff run`: one run of a file, by one adapter."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from tuneoff.cli.folders import add_output
from tuneoff.cli.matrix import add_matrix, run_plan
from tuneoff.cli.selection import add_file, overridden_plan
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan

NAME = "run"
HELP = "run one framework's first run of a file, without a warm-up"
EXAMPLE = "tuneoff run digits --adapter serial"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument(
        "--adapter",
        metavar="NAME",
        help="a framework by its adapter's name, NAME@PLATFORM, NAME==VERSION, or module:Class; default: the file's, "
        "if it names one alone",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed of the run; default: the file's first")
    parser.add_argument("--sampler", metavar="S", help="sampler of the run; default: the file's first")
    parser.add_argument("--trials", metavar="N", type=int, help="trials of the run; default: the file's budget.trials")
    parser.add_argument("--workers", metavar="N", type=int, help="workers of the run; default: the file's workers.count")
    add_output(parser)
    add_matrix(parser)
    parser.add_argument("--json", action="store_true", help="print the result of the run as JSON instead of the table")


def execute(arguments: argparse.Namespace) -> int:
    return run_plan(planned(arguments), arguments)


def planned(arguments: argparse.Namespace) -> Plan:
    """Return the plan of the one run that is asked for.

    Raises:
        ExperimentError: the file has several adapters, and none is named.
    """
    plan = overridden_plan(
        arguments.file,
        adapters=None if arguments.adapter is None else [arguments.adapter],
        trials=arguments.trials,
        workers=arguments.workers,
        seeds=None if arguments.seed is None else [arguments.seed],
        sampler=arguments.sampler,
    )
    names = dict.fromkeys(run.spec.adapter for run in plan.counted)
    if len(names) > 1:
        raise ExperimentError(f"--adapter must name the framework, as the file has several: {', '.join(names)}")
    return first_run(plan)


def first_run(plan: Plan) -> Plan:
    """Return the plan of the first run alone, with its copies, without its warm-up; one that is the same as another is that."""
    from tuneoff.experiment.plan import RULES

    first = plan.counted[0]
    if first.same_as is not None:
        first = next(run for run in plan.counted if run.run_id == first.same_as)
    analysis = {key: value for key, value in plan.analysis.items() if key != RULES}  # which hold for all runs of a file
    runs = tuple(run for run in plan.counted if run.spec.shared_key == first.spec.shared_key)
    return replace(plan, runs=runs, analysis=analysis)
