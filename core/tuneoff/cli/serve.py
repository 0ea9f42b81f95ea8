"""`tuneoff serve`: the report of a results folder in a browser, live while its matrix runs."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tuneoff.base.output import note, write
from tuneoff.cli.command import whole_number
from tuneoff.cli.folders import add_results, newest_folder

NAME = "serve"
HELP = "show report and live state of a results folder in a browser, read only, until Ctrl-C"
EXAMPLE = "tuneoff serve"
LOOPBACK = "127.0.0.1"
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument(
        "--port", metavar="N", type=whole_number(0, 65535), default=0, help="port to listen at; default: 0, any free one"
    )
    parser.add_argument(
        "--address",
        metavar="A",
        default=LOOPBACK,
        help=f"address to listen at; default: {LOOPBACK}, this machine alone; any other asks each reader for the token in the "
        "printed address",
    )


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.tell.live.server import serving
    from tuneoff.tell.live.site import Site, rendered
    from tuneoff.tell.live.watcher import Watcher

    site = Site(Watcher((arguments.results or newest_folder()).absolute()), rendered)
    with _signals_wait() as ends, serving(site, arguments.address, arguments.port) as server:
        if server.access.token is not None:
            note("tuneoff: whoever has the token can read; it is sent without encryption, so prefer 127.0.0.1 and an SSH tunnel")
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
