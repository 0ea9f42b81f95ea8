"""`tuneoff report`: the answers of a results folder as one page, or in the terminal."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.commands import command
from tuneoff.base.output import note, note_on_terminal, printable, terminal_width, write, write_json
from tuneoff.base.targets import unknown_name
from tuneoff.cli.command import ListedAction
from tuneoff.cli.folders import add_results, folder_path, newest_folder
from tuneoff.errors import TuneoffError, UnknownNameError

if TYPE_CHECKING:
    from tuneoff.judge.choice.choice import Choice

NAME = "report"
HELP = "write one self-contained page with the choice, tables and pictures of a results folder, and print its path"
EXAMPLE = "tuneoff report --text --must-retry"
NO_ANSWER = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--output", metavar="DIR", type=folder_path, help="folder of report.html; default: DIR/report")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--text", action="store_true", help="print the choice and the verdicts in words, and write nothing")
    form.add_argument("--json", action="store_true", help="print all answers as JSON, and write nothing")
    sizes = parser.add_argument_group("choose only among what was measured at these sizes, or around them")
    sizes.add_argument("--workers", metavar="N", type=int, help="workers of a run; default: any")
    sizes.add_argument("--trial-seconds", metavar="S", type=float, help="how long a trial takes, in seconds; default: any")
    sizes.add_argument("--trials", metavar="N", type=int, help="trials of a run; default: any")
    add_baseline(parser)
    needs = parser.add_argument_group("choose only among frameworks that can do this")
    needs.add_argument("--must-retry", action="store_true", help="a trial whose worker died is tried again")
    needs.add_argument("--platform", metavar="NAME", help="where it must run: local, kubernetes, ...; default: any")
    needs.add_argument("--sampler", metavar="NAME", help="random, tpe, ...; default: any")
    needs.add_argument("--pruner", metavar="NAME", help="asha, median, ...; default: any")
    faults = parser.add_argument_group("only frameworks that pass these faults, as `tuneoff faults --json` reports")
    faults.add_argument(
        "--faults", metavar="PATH", type=Path, nargs="+", action="extend", help="that file, or a folder of such files"
    )
    faults.add_argument(
        "--must-survive",
        metavar="FAULT",
        action=ListedAction,
        help="under these faults its answer is right for its completed trials",
    )
    faults.add_argument(
        "--never-silently-wrong", action="store_true", help="under no fault it reports success with a wrong answer"
    )
    faults.add_argument(
        "--faults-by",
        choices=("adapter", "defaults"),
        default="adapter",
        help="through tuneoff's adapter, or by the framework's own defaults; default: adapter, which is what was measured",
    )


def add_baseline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", metavar="NAME", help="adapter that ratios are against; default: the first framework")


def check_baseline(arguments: argparse.Namespace, labels: Iterable[str]) -> None:
    """Refuse a baseline that is none of the labels.

    Raises:
        UnknownNameError: it is none.
    """
    if arguments.baseline is None:
        return
    from tuneoff.judge.choice.choose import BASELINE
    from tuneoff.judge.results import POOL

    names = set(labels)
    if arguments.baseline == BASELINE and POOL in names:  # as tables call it
        arguments.baseline = POOL
    if arguments.baseline not in names:
        raise UnknownNameError(f"--baseline: {unknown_name('adapter', arguments.baseline, names)}")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.judge.answers.compute import answers
    from tuneoff.judge.choice.choose import choose
    from tuneoff.judge.choice.request import Request
    from tuneoff.judge.fault_results import read_faults
    from tuneoff.judge.results import read_results

    values = {item.name: getattr(arguments, item.name) for item in fields(Request)}
    request = Request(**{**values, "must_survive": tuple(dict.fromkeys(arguments.must_survive or ()))})
    faults = read_faults(arguments.faults or [], request.must_survive)
    results = arguments.results or newest_folder(needs_runs=True)
    answer, filters = answers(read_results(results)), None
    check_baseline(arguments, (group.label for group in answer.groups))
    if request != Request():
        from tuneoff.judge.choice.filters import filtered
        from tuneoff.registry import list_adapters

        filters = filtered(answer, list_adapters(), faults, request)  # installed ones: no module that a folder names is imported
        answer = filters.answers
    choice = choose(answer, filters, arguments.baseline)
    if arguments.json:
        from tuneoff.judge.answers.answers_json import choice_to_json, to_json

        filters_json = {} if filters is None else {"filters": filters.to_json()}
        write_json({"choice": choice_to_json(choice), **filters_json, **to_json(answer)})
    elif arguments.text or choice.refusal:
        from tuneoff.tell.report.tables import report_lines

        write("\n".join(map(printable, report_lines(choice, terminal_width()))))
    else:
        from tuneoff.tell.page.report import write_report

        write(printable(str(write_report(results, arguments.output, choice).resolve())))
    return NO_ANSWER if choice.refusal else 0


def written_report(results: Path, choice: Choice | None = None) -> Path | None:
    """Write the report of a finished matrix and return its path; None, and one line on standard error, where that fails.

    `choice`: what is said of it, where that is known already. Nothing of the matrix may be lost by a report: neither its
    results nor its exit code.
    """
    from tuneoff.tell.page.report import write_report

    note_on_terminal("writing the report ...")
    try:
        return write_report(results, choice=choice).resolve()
    except TuneoffError as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem = "interrupted"
    except Exception as error:  # whatever a drawing came to
        problem = f"a fault of tuneoff itself: {type(error).__name__}: {error}"
    way_out = f"the results are complete; to try again: {command('report', results)}"
    note(f"tuneoff: no report was written: {problem}; {way_out}")
    return None
