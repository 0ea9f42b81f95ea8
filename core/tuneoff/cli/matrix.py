"""Run a plan and show what came of it: the one code path of `run` and `compare`."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.commands import command
from tuneoff.base.format import counted
from tuneoff.base.output import note, printable, terminal_width, write, write_json
from tuneoff.cli.command import whole_number
from tuneoff.cli.folders import new_folder, resumed
from tuneoff.cli.report import written_report
from tuneoff.cli.selection import add_offline

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan, PlannedRun
    from tuneoff.judge.choice.choice import Choice
    from tuneoff.judge.results import Results
    from tuneoff.run.run_ends import RunEnd

FAILED, INTERRUPTED = 1, 130
RETRIES = ("flagged", "failed")


Notes = Callable[["Plan", "Sequence[PlannedRun]", Path], Sequence[str]]


def run_plan(plan: Plan, arguments: argparse.Namespace, notes: Notes = lambda plan, remaining, results: ()) -> int:
    """Execute a plan with progress on standard error, print its table and the path, and return the exit code.

    Reads what `add_output` and `add_matrix` declare, `json`, `report`, `seeds` and `argv` of the arguments.
    `notes`: of a plan, of its runs that are left and their folder, told before the first run.
    A report that cannot be written is one line, and changes no exit code.

    Raises:
        TuneoffError: bad data, an unusable results folder or port, a plan of which nothing would run.
    """
    from tuneoff.base.layout import LOG
    from tuneoff.base.tracebacks import logged_tracebacks
    from tuneoff.cli.selection import check_something_runs
    from tuneoff.judge.answers.compute import answers
    from tuneoff.judge.choice.choose import choose
    from tuneoff.judge.controls import controls_output
    from tuneoff.judge.controls.compute import controls
    from tuneoff.judge.results import read_results
    from tuneoff.record.run_record import FAILED as FAILURES
    from tuneoff.run.execute import PlanRequest, execute
    from tuneoff.run.progress import Listener
    from tuneoff.tell.live.display import progress

    check_something_runs(plan)
    resume = arguments.resume or arguments.retry is not None
    results = arguments.output or new_folder(plan)
    if resume:
        results, plan = resumed(plan, arguments.output, adds_seeds=getattr(arguments, "seeds", None) is not None)
    shows = contextlib.nullcontext(Listener()) if arguments.quiet else progress(sys.stderr, plan, results)
    with shows as listener:
        request = PlanRequest(
            plan=plan,
            results=results,
            listener=listener,
            resume=resume,
            retry=arguments.retry,
            maxfail=arguments.maxfail,
            notes=lambda remaining: notes(plan, remaining, results),
            offline=arguments.offline,
            verbose=arguments.verbose,
        )
        ends = execute(request)
    code = exit_code(ends, arguments.maxfail)
    named = names(plan)
    for end in ends:
        if end.status in FAILURES:
            log = f"; see {end.folder / LOG}" if end.folder is not None else ""
            note(f"tuneoff: run {end.run_id} ({named[end.run_id]}) {end.status}: {reason(end)}{log}")
        if arguments.debug and end.folder is not None:
            for traceback in logged_tracebacks(end.folder / LOG):
                print("\n".join(printable(line) for line in traceback.splitlines()), file=sys.stderr)
    with_report = getattr(arguments, "report", False) and code != INTERRUPTED
    contents = read_results(results)
    choice = None
    if with_report or not (arguments.json or arguments.verbose):
        choice = choose(answers(contents), baseline=getattr(arguments, "baseline", None))
    if arguments.json:
        values = {**to_json(contents, ends), "controls": controls_output.to_json(controls(contents))}
        report = written_report(results, choice) if with_report else None
        write_json({**values, "report": str(report) if report is not None else None, "exit_code": code})
    else:
        write(f"\n{table(contents) if arguments.verbose or choice is None else ending_text(choice)}\n")
        report = written_report(results, choice) if with_report else None
        write("\n".join(printable(str(path)) for path in (report, results.resolve()) if path is not None))
    if code == INTERRUPTED:
        note("tuneoff: interrupted; to go on:")
    elif any(end.status == "planned" for end in ends):
        note(f"tuneoff: stopped after {counted(arguments.maxfail, 'failed run')} (--maxfail); to go on:")
    else:
        return code
    note(resume_command(arguments.argv, results))  # the last line
    return code


def add_matrix(parser: argparse.ArgumentParser) -> None:
    """Declare what is repeated, when a matrix stops, and how much is told of it."""
    parser.add_argument(
        "--retry",
        choices=RETRIES,
        help="resume, and repeat; flagged: whole blocks (all runs of a seed) that hold a run with a flag of the machine, decided "
        "blind to results; failed: all failed runs, as the answer then says. Earlier executions are kept",
    )
    parser.add_argument(
        "--maxfail", metavar="N", type=whole_number(1), help="stop after N failed runs; --resume goes on; default: after none"
    )
    add_offline(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress: only the answer and problems")
    parser.add_argument("--verbose", action="store_true", help="end with all figures and the notes on meters, prices and flags")


def ending_text(choice: Choice) -> str:
    """Return the short ending of a results folder."""
    from tuneoff.tell.report.tables import ending

    return "\n".join(printable(line) for line in ending(choice, terminal_width()))


def exit_code(ends: Sequence[RunEnd], maxfail: int | None = None) -> int:
    """Return 0 where each run is done or skipped, 130 where the matrix was interrupted, else 1."""
    from tuneoff.record.run_record import FAILED as FAILURES
    from tuneoff.run.run_ends import UNFINISHED

    statuses = {end.status for end in ends}
    if statuses <= {"done", "skipped"}:
        return 0
    if maxfail is not None and statuses & set(FAILURES) and "interrupted" not in statuses:
        return FAILED
    return INTERRUPTED if statuses & set(UNFINISHED) else FAILED


def resume_command(argv: Sequence[str], results: Path) -> str:
    """Return the command that goes on: the same arguments, for they are a part of the plan, on that folder."""
    more = [] if "--resume" in argv else ["--resume"]
    if not any(word.partition("=")[0] == "--output" for word in argv):
        more += ["--output", str(results)]
    end = argv.index("--") if "--" in argv else len(argv)  # what follows is not an option
    return command(*argv[:end], *more, *argv[end:])


def to_json(results: Results, ends: Sequence[RunEnd]) -> dict[str, Any]:
    """Return what each planned run came to, with what tells it from the others, and interference, as JSON values."""
    from tuneoff.tell.report.interference import SAMPLER, interference, interference_json

    plan = results.plan
    specs, named = {run.run_id: run.spec for run in plan.counted}, names(plan)
    runs = []
    for end in ends:
        spec = specs[end.run_id]
        experiment = spec.experiment
        run = {
            "run_id": end.run_id,
            "name": named[end.run_id],
            "label": end.label,
            "adapter": spec.adapter,
            "platform": spec.platform,
            "sampler": experiment.sampler.name,
            "pruner": experiment.pruner.name,
            "variant": dict(experiment.variant),
            "seed": spec.seed,
            "warm_up": spec.warm_up,
            "status": end.status,
            "reason": reason(end) or None,
            "flags": list(end.flags),
            "folder": str(end.folder.resolve()) if end.folder is not None else None,
        }
        runs.append(run)
    compared = []
    if any(spec.experiment.sampler.name == SAMPLER for spec in specs.values()):
        compared = interference_json(interference(results))
    return {"results": str(results.folder.resolve()), "plan_id": plan.plan_id, "runs": runs, "interference": compared}


def names(plan: Plan) -> dict[str, str]:
    """Return the name of each run by its id, as the progress has it."""
    from tuneoff.experiment.names import run_name

    labels = plan.label_texts
    return {run.run_id: run_name(labels[run.label], run.spec) for run in plan.runs}


def reason(end: RunEnd) -> str:
    """Return why a run is not done; nothing where that only repeats the status."""
    return "" if end.reason in (None, end.status) else str(end.reason)


def table(results: Results) -> str:
    """Return the table of a results folder: it fits the terminal, and has all columns where there is none."""
    from tuneoff.base.format import wrapped
    from tuneoff.judge.controls.compute import controls
    from tuneoff.judge.controls.controls_output import headlines
    from tuneoff.judge.groups import in_plan_order
    from tuneoff.run.repeats import repeat_lines
    from tuneoff.tell.report.interference import interference, interference_lines
    from tuneoff.tell.report.notes import circumstances
    from tuneoff.tell.report.tables import render

    width = terminal_width()
    figures = render(in_plan_order(results), width, circumstances(results.folder, results.records))
    between = interference_lines(interference(results))
    below = [*repeat_lines(results.plan, results.records), *headlines(controls(results), results.folder), *between]
    return "\n".join(filter(None, (figures, "".join(f"{line}\n" for line in wrapped(below, width)))))
