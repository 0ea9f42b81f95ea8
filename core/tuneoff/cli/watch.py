"""`tuneoff watch`: a matrix that another process runs, live in the terminal or in a browser, or one look at its folder."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.json_values import plain
from tuneoff.base.output import filled_columns, note, plain_line, printable, write, write_json
from tuneoff.cli.command import whole_number
from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan
    from tuneoff.judge.results import Results
    from tuneoff.run.run_ends import RunEnd

NAME = "watch"
HELP = (
    "show a matrix live while another process runs it, in the terminal or in a browser, or look once at a results folder; "
    "nothing is written to it"
)
EXAMPLE = "tuneoff watch --runs"
LOOPBACK = "127.0.0.1"
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOKS = ("once", "runs", "declared", "tables")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--once", action="store_true", help="show the current state in a few lines")
    how.add_argument("--runs", action="store_true", help="show each planned run with its status now")
    how.add_argument(
        "--declared",
        action="store_true",
        help="show each declared variable (workers, vCPU, memory, data, code, ...) next to what the runs show",
    )
    how.add_argument(
        "--tables", action="store_true", help="show the table of figures, as `tuneoff compare --verbose` ends with it"
    )
    how.add_argument(
        "--serve",
        action="store_true",
        help="show report and live state in a browser, read only, until Ctrl-C; prints the address",
    )
    parser.add_argument(
        "--json", action="store_true", help="write JSON: the state (--once), or the folder and one object per planned run"
    )
    parser.add_argument("--port", metavar="N", type=whole_number(0, 65535), help="with --serve: default: 0, any free one")
    parser.add_argument(
        "--address",
        metavar="A",
        help=f"with --serve: default: {LOOPBACK}, this machine only; any other address requires the token in the printed URL",
    )


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.tell.live.display import watch
    from tuneoff.tell.live.watcher import Watcher

    look = next((name for name in LOOKS if getattr(arguments, name)), None)
    if arguments.json and look is None:
        raise ExperimentError("`--json` needs one look: add --once, --runs or --declared")
    for name in ("port", "address"):
        if getattr(arguments, name) is not None and not arguments.serve:
            raise ExperimentError(f"`--{name}` needs `--serve`; add --serve")
    results = arguments.results or newest_folder()
    if arguments.serve:
        return _serve(results, arguments.address or LOOPBACK, arguments.port or 0)
    if look is None:
        return watch(Watcher(results), sys.stdout)
    _look(results, look, as_json=arguments.json)
    return 0


def _look(results: Path, look: str, *, as_json: bool) -> None:
    from tuneoff.cli.matrix import table, to_json
    from tuneoff.judge.results import read_results
    from tuneoff.measure.stored import read_run
    from tuneoff.tell.live import sentences
    from tuneoff.tell.live.watcher import Watcher

    if look == "once":
        state = Watcher(results).look()
        if as_json:
            write_json(sentences.to_json(state))
        else:
            write("\n".join(plain_line(line) for line in sentences.lines(state)))
        return
    contents = read_results(results)
    if as_json:
        values = to_json(contents, contents.ends)
        folders = {end.run_id: end.folder for end in contents.ends}
        for run in values["runs"] if look == "declared" else ():
            folder = folders[run["run_id"]]
            run["declared"] = plain(read_run(folder).declared) if folder is not None else []
        write_json(values)
    elif look == "runs":
        write(_runs_text(contents))
    else:
        write(f"{_declared_text(contents) if look == 'declared' else table(contents)}\n{results.resolve()}")


def _serve(results: Path, address: str, port: int) -> int:
    from tuneoff.tell.live.server import serving
    from tuneoff.tell.live.site import Site, rendered
    from tuneoff.tell.live.watcher import Watcher

    # the signals that end the command are held back for `sigwait`: no handler runs in the middle of anything
    ends = [number for number in ENDS if signal.getsignal(number) is not signal.SIG_IGN]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        with serving(Site(Watcher(results.absolute()), rendered), address, port) as server:
            if server.access.token is not None:
                note("tuneoff: the token gives read access and is sent unencrypted, so prefer 127.0.0.1 and an SSH tunnel")
            write(server.url)
            signal.sigwait(ends)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 0


def _declared_text(contents: Results) -> str:
    """Return what was declared next to what the runs show."""
    from tuneoff.cli.matrix import names
    from tuneoff.measure.stored import read_run
    from tuneoff.tell.report.declared import HEADER, declared_rows, mismatches

    named = names(contents.plan)
    runs = [(named[end.run_id], read_run(end.folder)) for end in contents.ends if end.folder is not None]
    rows = list(declared_rows(runs))
    if not rows:
        return "no run has a record of declared variables\n"
    lines = mismatches(runs)
    summary = f"{len(lines)} {'mismatch' if len(lines) == 1 else 'mismatches'}:" if lines else "no mismatch"
    table = filled_columns(HEADER, rows, optional=("runs",))
    return "\n".join([table, "", summary, *(f"  {line}" for line in lines), ""])


def _runs_text(contents: Results) -> str:
    """Return each planned run with its status and why it is not done, the state in short, and the folder."""
    from tuneoff.experiment.names import strategy_text, variant_text
    from tuneoff.record.flag_meanings import marked
    from tuneoff.tell.live.sentences import overview
    from tuneoff.tell.live.watcher import Watcher

    plan, ends, results = contents.plan, contents.ends, contents.folder
    labels = plan.label_texts
    specs = {run.run_id: run.spec for run in plan.counted}
    rows = []
    for end in ends:
        spec = specs[end.run_id]
        rows.append(
            (
                end.run_id,
                labels[end.label],
                strategy_text(spec.experiment),
                variant_text(spec.experiment.variant),
                str(spec.seed),
                end.status,
                ", ".join(marked(end.flags)),
            )
        )
    header = ("run", "adapter", "sampler", "variant", "seed", "status", "flags")
    table = filled_columns(header, rows, optional=("variant", "flags"))
    state = "\n".join(map(plain_line, overview(Watcher(results, plan).look())))
    return f"{table}{_reasons(plan, ends)}\n\n{state}\n{results.resolve()}"


def _reasons(plan: Plan, ends: Sequence[RunEnd]) -> str:
    """Return why runs are not done, each reason once."""
    from tuneoff.cli.matrix import names, reason
    from tuneoff.tell.report.declared import together

    named, runs_by_reason = names(plan), dict[str, list[str]]()
    for end in ends:
        if reason(end):
            runs_by_reason.setdefault(f"{end.status}: {reason(end)}", []).append(named[end.run_id])
    return "".join(f"\n{printable(f'{together(runs)}: {why}')}" for why, runs in runs_by_reason.items())
