"""`tuneoff watch`: a matrix that another process runs, live in the terminal or in a browser, or one look at its folder."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tuneoff.base.output import note, plain_line, write, write_json
from tuneoff.cli.command import whole_number
from tuneoff.cli.folders import add_results, newest_folder
from tuneoff.errors import ExperimentError

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
    from tuneoff.cli import status
    from tuneoff.tell.live import sentences
    from tuneoff.tell.live.watcher import Watcher

    if look == "once":
        state = Watcher(results).look()
        if as_json:
            write_json(sentences.to_json(state))
        else:
            write("\n".join(plain_line(line) for line in sentences.lines(state)))
    elif as_json:
        write_json(status.status_json(results, with_declared=look == "declared"))
    else:
        texts = {"runs": status.runs_text, "declared": status.declared_text, "tables": status.figures_text}
        write(texts[look](results))


def _serve(results: Path, address: str, port: int) -> int:
    from tuneoff.tell.live.server import serving
    from tuneoff.tell.live.site import Site, rendered
    from tuneoff.tell.live.watcher import Watcher

    site = Site(Watcher(results.absolute()), rendered)
    with _signals_wait() as ends, serving(site, address, port) as server:
        if server.access.token is not None:
            note("tuneoff: the token gives read access and is sent unencrypted, so prefer 127.0.0.1 and an SSH tunnel")
        write(server.url)
        signal.sigwait(ends)
    return 0


@contextmanager
def _signals_wait() -> Iterator[list[signal.Signals]]:
    """Yield the signals that end the command, held back for `sigwait`: no handler runs in the middle of anything."""
    ends = [number for number in ENDS if signal.getsignal(number) is not signal.SIG_IGN]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        yield ends
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
