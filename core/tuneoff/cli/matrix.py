"""Run a plan and show what came of it: the one code path of `run` and `compare`."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.cli.command import script_name
from tuneoff.cli.folders import folder_to_resume, new_folder
from tuneoff.cli.output import note, write, write_json

if TYPE_CHECKING:
    from tuneoff.matrix.folder import RunEnd
    from tuneoff.matrix.plan import Plan

FAILED, INTERRUPTED = 1, 130
WIDTH = 120  # of a table that goes to a file


def run_plan(plan: Plan, arguments: argparse.Namespace) -> int:
    """Execute a plan with progress on standard error, print its table and the path, and return the exit code.

    Reads `output`, `resume`, `json` and `argv` of the arguments.

    Raises:
        TuneoffError: bad data, an unusable results folder, a plan of which nothing would run.
    """
    from tuneoff.cli.selection import check_something_runs
    from tuneoff.matrix.execute import execute
    from tuneoff.report.progress import progress

    check_something_runs(plan)
    results = arguments.output or (folder_to_resume(plan) if arguments.resume else new_folder(plan))
    skipped = [position for position, run in enumerate(plan.runs, 1) if run.skip_reason is not None]
    with progress(sys.stderr, skipped) as listener:
        ends = execute(plan, results, listener=listener, resume=arguments.resume)
    code = exit_code(ends)
    for end in ends:
        if end.status in ("failed", "timeout"):
            log = f"; see {end.folder / 'log.txt'}" if end.folder is not None else ""
            note(f"tuneoff: run {end.run_id} ({end.label}) {end.status}: {end.reason}{log}")
    if code == INTERRUPTED:
        note(f"tuneoff: interrupted; to go on: {resume_command(arguments.argv, results)}")
    if arguments.json:
        write_json({"results": str(results.absolute()), "plan_id": plan.plan_id, "exit_code": code, "runs": ends_to_json(ends)})
    else:
        write(f"\n{table(plan, results)}\n{results.absolute()}")
    return code


def exit_code(ends: Sequence[RunEnd]) -> int:
    """Return 0 where each run is done or skipped, 130 where the matrix was interrupted, else 1."""
    statuses = {end.status for end in ends}
    if statuses <= {"done", "skipped"}:
        return 0
    return INTERRUPTED if statuses & {"interrupted", "planned"} else FAILED


def resume_command(argv: Sequence[str], results: Path) -> str:
    """Return the command that goes on: the same arguments, for they are a part of the plan, on that folder."""
    again = list(argv)
    if "--resume" not in again:
        again.append("--resume")
    if not any(word.partition("=")[0] == "--output" for word in again):
        again.extend(["--output", str(results)])
    return f"{script_name()} {shlex.join(again)}"


def ends_to_json(ends: Sequence[RunEnd]) -> list[dict[str, str | None]]:
    return [
        {
            "run_id": end.run_id,
            "label": end.label,
            "status": end.status,
            "reason": end.reason,
            "folder": str(end.folder.absolute()) if end.folder is not None else None,
        }
        for end in ends
    ]


def table(plan: Plan, results: Path) -> str:
    """Return the table of a results folder, as wide as the terminal, or as a file may be."""
    from tuneoff.records.store import read_runs
    from tuneoff.report.summary import summary_rows
    from tuneoff.report.table import render

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    return render(summary_rows(read_runs(results), plan.counted), width=width)
