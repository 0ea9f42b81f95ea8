"""`tuneoff recommend`: which framework for these constraints, by what adapters can and what was measured."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.output import write, write_json
from tuneoff.cli.command import ListedAction
from tuneoff.cli.folders import folder_path, newest_folder
from tuneoff.experiment.metric_catalogue import QUESTIONS

if TYPE_CHECKING:
    from tuneoff.judge.recommend.request import Request

NAME = "recommend"
HELP = (
    "say which frameworks meet constraints, and which of them measured results show to be better; never beyond what was measured"
)
EXAMPLE = "tuneoff recommend --workers 2 --must-retry"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", metavar="DIR", type=folder_path, nargs="*", help="results folders; default: the newest one under results/"
    )
    sizes = parser.add_argument_group("sizes, which must lie in what was measured")
    sizes.add_argument("--workers", metavar="N", type=int, help="workers of a run; default: any")
    sizes.add_argument("--trial-seconds", metavar="S", type=float, help="how long a trial takes, in seconds; default: any")
    sizes.add_argument("--trials", metavar="N", type=int, help="trials of a run; default: any")
    needs = parser.add_argument_group("what a framework must be able to do")
    needs.add_argument("--must-retry", action="store_true", help="a trial whose worker died is tried again")
    needs.add_argument("--platform", metavar="NAME", help="where it must run: local, kubernetes, ...; default: any")
    needs.add_argument("--sampler", metavar="NAME", help="random, tpe, ...; default: any")
    needs.add_argument("--pruner", metavar="NAME", help="asha, median, ...; default: any")
    faults = parser.add_argument_group("what it must survive, by what `tuneoff faults --json` wrote")
    faults.add_argument("--faults", metavar="PATH", type=Path, nargs="+", action="extend", help="that file, or a folder of such")
    faults.add_argument(
        "--must-survive",
        metavar="FAULT",
        action=ListedAction,
        help="under these faults its answer holds for the trials that it completed",
    )
    faults.add_argument(
        "--never-silently-wrong", action="store_true", help="under no fault it ends well with an answer that is not true"
    )
    faults.add_argument(
        "--faults-by",
        choices=("adapter", "defaults"),
        default="adapter",
        help="through tuneoff's adapter, or by the framework's own defaults; default: adapter, which is what was measured",
    )
    parser.add_argument("--prefer", choices=QUESTIONS, help="explain this question first; it ranks nothing")
    parser.add_argument("--runs", action="store_true", help="list the ids of the runs that each sentence rests on")
    parser.add_argument("--json", action="store_true", help="write JSON: the answer, every reason and the runs that it rests on")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.judge.choice.choose import answered
    from tuneoff.judge.fault_results import read_faults
    from tuneoff.judge.recommend.eligibility import check_request
    from tuneoff.judge.recommend.recommend import recommend, to_json
    from tuneoff.judge.recommend.recommendation_text import lines
    from tuneoff.judge.results import read_results
    from tuneoff.registry import list_adapters

    request = _request(arguments)
    evidence = read_faults(arguments.faults or [], request.must_survive)
    paths = {path.resolve(): path for path in arguments.results or [newest_folder(needs_runs=True)]}
    folders = [answered(read_results(path)) for path in paths.values()]
    known = list_adapters()  # installed ones: no module that a folder names is imported
    check_request(request, known)
    recommendation = recommend(folders, known, evidence, request)
    if arguments.json:
        write_json(to_json(recommendation))
    else:
        write("\n".join(lines(recommendation, with_runs=arguments.runs)))
    return recommendation.exit_code


def _request(arguments: argparse.Namespace) -> Request:
    """Return the request: its fields are options of the command."""
    from tuneoff.judge.recommend.request import Request

    given = {item.name: getattr(arguments, item.name) for item in fields(Request)}
    return Request(**{**given, "must_survive": tuple(dict.fromkeys(arguments.must_survive or ()))})
