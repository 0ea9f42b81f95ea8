"""`tuneoff reproduce`: run a part of a bundle again on this machine, and answer column by column."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.commands import command
from tuneoff.base.format import counted
from tuneoff.base.output import columns, note, one_line, plain_line, write, write_json
from tuneoff.cli.bundle import MEGABYTE, add_limit
from tuneoff.cli.command import whole_number
from tuneoff.cli.folders import folder_path, new_folder
from tuneoff.cli.selection import add_adapters
from tuneoff.errors import NOT_KNOWN

if TYPE_CHECKING:
    from tuneoff.run.run_ends import RunEnd
    from tuneoff.trust.bundle.columns import ReproducedColumn
    from tuneoff.trust.bundle.reproduce import ReproduceRequest, Reproduction

NAME = "reproduce"
HELP = "run a part of a bundle again and answer REPRODUCED, DIFFERENT or INCONCLUSIVE per column, with the reason"
EXAMPLE = "tuneoff reproduce results/digits.tar.gz --adapter serial"
LIMIT_MB = 4000
CODES = {"REPRODUCED": 0, "DIFFERENT": 1, "INCONCLUSIVE": NOT_KNOWN}
INTERRUPTED = 130
CLASSES = {"exact": "exact", "statistical": "statistical", "machine": "bound to the machine"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", type=Path, help="an archive that tuneoff bundle made")
    add_adapters(parser, "only these frameworks")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--runs", metavar="N", type=whole_number(1), default=1, help="the N cheapest runs of each framework; default: 1"
    )
    which.add_argument("--all", dest="everything", action="store_true", help="every run that is done in the bundle")
    parser.add_argument(
        "--seed", metavar="N", type=whole_number(0), help="another seed: then it is another run, and the answer says so"
    )
    parser.add_argument("--plan", action="store_true", help="show what would run and what differs here; starts nothing")
    parser.add_argument(
        "--output", metavar="DIR", type=folder_path, help="results folder; default: results/<name>-reproduced-<time>"
    )
    add_limit(parser, LIMIT_MB)
    parser.add_argument("--json", action="store_true", help="write the answer as JSON")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.run.run_ends import UNFINISHED
    from tuneoff.trust.bundle.opened import open_bundle
    from tuneoff.trust.bundle.reproduce import compare, prepare

    bundle = open_bundle(arguments.bundle, arguments.limit_mb * MEGABYTE)
    request = prepare(
        bundle, adapters=arguments.adapters, runs=arguments.runs, everything=arguments.everything, seed=arguments.seed
    )
    show = note if arguments.json else write
    for line in _before(request):
        show(line)
    if arguments.plan:
        if arguments.json:
            write_json(compare(request, None).to_json())
        return 0
    results, ends = _run(request, arguments) if request.runnable else (None, [])
    reproduction = compare(request, results)
    unfinished = sum(end.status in UNFINISHED for end in ends)
    code = INTERRUPTED if unfinished else CODES[reproduction.answer]
    if arguments.json:
        write_json({**reproduction.to_json(), "exit_code": code})
    else:
        write("\n".join(_after(reproduction, len(ends) - unfinished)))
    if unfinished:
        note(f"tuneoff: interrupted; to begin again:\n{command(*arguments.argv)}")
    return code


def _run(request: ReproduceRequest, arguments: argparse.Namespace) -> tuple[Path, list[RunEnd]]:
    from tuneoff.run.execute import PlanRequest
    from tuneoff.run.execute import execute as execute_plan
    from tuneoff.tell.live.display import progress

    plan = request.plan()
    results = arguments.output or new_folder(plan)
    with progress(sys.stderr, plan, results) as listener:
        return results, execute_plan(PlanRequest(plan=plan, results=results, listener=listener))


def _before(request: ReproduceRequest) -> Iterator[str]:
    """Yield the table of what is in the bundle and here, the options that the bundle gives, and what will be run."""
    from tuneoff.base.identity import canonical_json
    from tuneoff.judge.comparison.environments import environment_table
    from tuneoff.trust.bundle.foreign import obeyed_power

    yield environment_table(request.preflight.rows, "in the bundle", "here")
    yield ""
    for kind, plugins in (("adapter", request.adapters), ("workload", request.workloads)):
        for name, options in plugins:
            yield plain_line(f"options of the {kind} {name}, as the bundle gives them: {canonical_json(options)}")
    _, not_obeyed = obeyed_power(request.bundle.plan.power)
    if not_obeyed is not None:
        yield plain_line(not_obeyed)
    for run in request.chosen:
        reason = request.not_here.get(run.run_id)
        yield plain_line(
            f"{'to run' if reason is None else 'not run'}: {request.names[run.run_id]}{f': {reason}' if reason else ''}"
        )
    if request.bundle.manifest.missing:
        yield f"missing in the bundle: {counted(len(request.bundle.manifest.missing), 'thing')}, see its README.txt"


def _after(reproduction: Reproduction, ended: int) -> Iterator[str]:
    yield ""
    for tolerance, title in CLASSES.items():
        chosen = [column for column in reproduction.columns if column.tolerance == tolerance]
        if chosen:
            yield f"{title}:"
            yield columns(("column", "answer", "runs", "why (of the first)"), list(_rows(chosen)))
            yield ""
    if reproduction.results is not None:
        yield str(reproduction.results.resolve())
    if reproduction.machine is not None:
        yield f"times, energy, cost, memory: {reproduction.machine.value} (a band, not an equality; not in the answer below)"
    again = f"{counted(ended, 'run')} of {reproduction.eligible_runs} run again"
    yield plain_line(f"{reproduction.answer.value}: {again}; {reproduction.why}")


def _rows(chosen: list[ReproducedColumn]) -> Iterator[tuple[str, str, str, str]]:
    """Yield one row per column and answer, with the reason of its first run; what is not reproduced, once for each reason."""
    for name in dict.fromkeys(column.name for column in chosen):
        groups: dict[tuple[str, str], list[ReproducedColumn]] = {}
        for column in chosen:
            if column.name == name:
                is_alike = column.answer == "REPRODUCED" or column.tolerance == "machine"
                groups.setdefault((column.answer.value, "" if is_alike else column.why), []).append(column)
        for (answer, _), members in groups.items():
            runs = members[0].where if len(members) == 1 else f"{members[0].where} and {len(members) - 1} more"
            yield name, answer, runs, one_line(members[0].why)
