"""The meter against the real Prometheus, which scrapes the real node_exporter, which reads a fake powercap tree."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from prometheus.real_servers import Powercap, needs_servers, node_exporter, prometheus, query
from tuneoff.meter import MeterError
from tuneoff.record.samples.reader import DomainEnergy
from tuneoff_meters.prometheus.meter import PrometheusMeter
from waiting import until

pytestmark = [pytest.mark.slow, needs_servers]

ZONES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl:1": "psys",
    "intel-rapl-mmio:0": "package-0",
}
SECONDS = 3.0
A, B = 120.0, 30.0  # watts of the two nodes' packages
TOLERANCE = 2 * 0.2 / SECONDS + 0.05  # a scrape at each end, and a busy machine


@contextmanager
def burning(nodes: dict[Powercap, float], counters: dict[Powercap, float]) -> Iterator[None]:
    """Let the counters of nodes rise at their watts while the block runs, from where they stand; core within, DRAM a tenth."""
    stop = threading.Event()

    def burn() -> None:
        last = time.monotonic()
        while not stop.wait(0.01):
            now = time.monotonic()
            for node, watts in nodes.items():
                counters[node] += watts * (now - last)
                for zone, share in zip(ZONES, (1.0, 0.5, 0.1, 3.0, 1.0), strict=True):
                    node.set(zone, counters[node] * share)
            last = now

    thread = threading.Thread(target=burn)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def own(url: str, text: str, unit: str = "watts") -> PrometheusMeter:
    return PrometheusMeter({"url": url, "domains": {"wall": {"query": text, "unit": unit}}})


def test_the_energy_of_two_real_nodes_is_what_their_counters_did_and_own_promql_is_the_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="node-a"))
    a, b = Powercap(tmp_path / "a", ZONES), Powercap(tmp_path / "b", ZONES)
    counters = {a: 262_000.0, b: 5.0}
    with ExitStack() as stack:
        labels = [{"instance": "node-a:9100"}, {"instance": "node-b:9100"}]
        url, addresses = stack.enter_context(prometheus(tmp_path / "server", labels))
        for node, address in zip((a, b), addresses, strict=True):
            stack.enter_context(node_exporter(node.root, address))
        stack.enter_context(burning({a: A, b: B}, counters))
        enough = "count(count_over_time(node_rapl_dram_joules_total[9s]) > 12)"
        until(lambda: [count for _, count in query(url, enough)] == [2])
        meter = PrometheusMeter({"url": url})
        expected = tuple(f"{node}/{zone}" for node in ("node-a", "node-b") for zone in ("dram-0", "package-0"))
        assert (meter.description.kind, meter.description.domains) == ("measured", expected)
        start = time.time_ns()
        started = dict(counters)
        until(lambda: time.time_ns() - start > SECONDS * 1e9)
        end = time.time_ns()
        used = {node: counters[node] - started[node] for node in (a, b)}
        found = meter.collect(start, end)
        assert meter.problems == []
        domains: dict[str, DomainEnergy] = defaultdict(DomainEnergy)
        for sample in found:
            domains[sample.domain].take(sample)
        energies = {name: domain.series().energy(start, end) for name, domain in domains.items()}
        packages = {"node-a/package-0": used[a], "node-b/package-0": used[b]}
        drams = {"node-a/dram-0": used[a] / 10, "node-b/dram-0": used[b] / 10}
        assert energies == pytest.approx({**packages, **drams}, rel=TOLERANCE)
        assert PrometheusMeter({"url": url, "nodes": "node-b"}).description.domains == expected[2:]
        assert any(sample.t >= end for sample in found)  # it waited for the scrape that covers the end
        query_text = "sum by (instance) (node_rapl_package_joules_total) # all"
        assert own(url, query_text, "joules").description.domains == ("node-a/wall", "node-b/wall")
        assert {sample.watts for sample in own(url, "vector(42)").collect(start, end)} == {42.0}
        with pytest.raises(MeterError, match=r"HTTP 400\).*parse error"):
            own(url, "sum(")
        with pytest.raises(MeterError, match="must give one series per node, but gives"):
            own(url, "node_cpu_seconds_total")
        with pytest.raises(MeterError, match="no dcgm metrics, but has those of node_exporter"):
            PrometheusMeter({"url": url, "source": "dcgm"})
