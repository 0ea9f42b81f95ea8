"""`tuneoff report`: the answers of a results folder as one page, or in the terminal."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.commands import command
from tuneoff.base.output import note, note_on_terminal, printable, terminal_width, write, write_json
from tuneoff.cli.folders import add_results, folder_path, newest_folder
from tuneoff.errors import TuneoffError

if TYPE_CHECKING:
    from tuneoff.judge.choice.choose import Answered

NAME = "report"
HELP = "write one self-contained page with the choice, tables and pictures of a results folder, and print its path"
EXAMPLE = "tuneoff report --text"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--output", metavar="DIR", type=folder_path, help="folder of report.html; default: DIR/report")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--text", action="store_true", help="print the choice and the verdicts in words, and write nothing")
    shown.add_argument("--json", action="store_true", help="print all answers as JSON, and write nothing")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.tell.page.report import write_report

    results = arguments.results or newest_folder(needs_runs=True)
    if not (arguments.text or arguments.json):
        write(printable(str(write_report(results, arguments.output).resolve())))
        return 0
    from tuneoff.judge.choice.choose import answered
    from tuneoff.judge.results import read_results

    found = answered(read_results(results))
    if arguments.json:
        from tuneoff.judge.answers.answers_json import choice_to_json, to_json

        write_json({"choice": choice_to_json(found.choice), **to_json(found.answers)})
    else:
        from tuneoff.judge.answers.phrases import lines
        from tuneoff.judge.choice.curve import curve_lines
        from tuneoff.tell.report.tables import ending

        warnings = [one.long for one in found.choice.warnings]
        told = [line for setting in found.choice.settings for line in curve_lines(setting)]
        write(
            "\n".join(
                map(
                    printable,
                    (
                        *ending(found.choice, terminal_width()),
                        "",
                        *told,
                        *lines(found.answers, warnings),
                    ),
                )
            )
        )
    return 0


def written_report(results: Path, found: Answered | None = None) -> Path | None:
    """Write the report of a finished matrix and return its path; None, and one line on standard error, where that fails.

    `found`: what is said of it, where that is known already. Nothing of the matrix may be lost by a report: neither its
    results nor its exit code.
    """
    from tuneoff.tell.page.report import write_report

    note_on_terminal("writing the report ...")
    try:
        return write_report(results, found=found).resolve()
    except TuneoffError as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem = "interrupted"
    except Exception as error:  # whatever a drawing came to
        problem = f"a fault of tuneoff itself: {type(error).__name__}: {error}"
    way_out = f"the results are complete; to try again: {command('report', results)}"
    note(f"tuneoff: no report was written: {problem}; {way_out}")
    return None
