"""`--metrics-port` and `--metrics-address`: live metrics of the running matrix for Prometheus."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuneoff.base.output import note

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan
    from tuneoff.run.listener import Listener

LOOPBACK = "127.0.0.1"


def add_metrics_port(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics-port",
        metavar="N",
        type=port_number,
        help="serve live metrics for Prometheus at this port while the command runs, 0 for any that is free; default: none",
    )
    parser.add_argument(
        "--metrics-address",
        metavar="A",
        default=LOOPBACK,
        help=f"address of --metrics-port; default: {LOOPBACK}, this machine alone",
    )


@contextlib.contextmanager
def metrics_of(plan: Plan, arguments: argparse.Namespace, shown: Listener) -> Iterator[Listener]:
    """Yield what listens: `shown`, or where a port is asked for what exports it too, until the block ends.

    Raises:
        MissingPackageError: prometheus-client is not installed.
        ExperimentError: the port or the address cannot be used.
    """
    if arguments.metrics_port is None:
        yield shown
        return
    from tuneoff.tell.prometheus.exporter import exported

    with exported(plan, shown, arguments.metrics_port, arguments.metrics_address) as (metrics, url):
        note(f"live metrics: {url}")
        yield metrics


def port_number(text: str) -> int:
    """Return an argument as a port."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, but got {text!r}")
    return int(text)
