"""Serve the live metrics of a matrix at http://ADDRESS:PORT/metrics for as long as it runs."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuneoff.base.listening import unusable
from tuneoff.base.packages import module_exists
from tuneoff.errors import ExperimentError, MissingPackageError, PluginError
from tuneoff.run.listener import Listener
from tuneoff.tell.prometheus.live import LiveMetrics

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan

INSTALL = "pip install 'tuneoff[prometheus]'"


@contextlib.contextmanager
def exported(plan: Plan, shown: Listener, port: int, address: str) -> Iterator[tuple[LiveMetrics, str]]:
    """Yield the listener that exports what it is told (and tells `shown`), and the address of its page; port 0 is a free one.

    Raises:
        MissingPackageError: prometheus-client is not installed.
        ExperimentError: the address cannot be listened on.
    """
    if not module_exists("prometheus_client"):
        raise MissingPackageError(f"`--metrics-port` needs the prometheus-client package; run: {INSTALL}")
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise PluginError(f"prometheus-client is installed, but its import fails: {error}; run: {INSTALL}") from error
    metrics = LiveMetrics(plan, shown)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    try:
        server, thread = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        raise ExperimentError(
            unusable(address, port, error, port_option="--metrics-port", address_option="--metrics-address")
        ) from error
    try:
        host = f"[{address}]" if ":" in address else address
        yield metrics, f"http://{host}:{server.server_port}/metrics"
    finally:
        with contextlib.suppress(OSError):
            server.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, which looks at its end only twice a second
        server.shutdown()
        server.server_close()
        thread.join()
