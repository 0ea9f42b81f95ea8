"""What whole nodes used, as node_exporter told a server: at the times of the scrapes, each node once."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus.fake_server import FakePrometheus, failure, serving
from prometheus.test_meter import node_exporter, window
from tuneoff.base import clock
from tuneoff.measure.power.reading import collected
from tuneoff.meter import PowerMeter
from tuneoff.record.samples.schema import NodeSample, PowerSample
from tuneoff_meters.prometheus.meter import PrometheusMeter
from tuneoff_meters.prometheus.nodes import node_use

Answers = list[list[dict[str, Any]]]
GB = 10**9


def answer(found: Mapping[tuple[str, str], Sequence[tuple[float, float]]]) -> Answers:
    """Return the answer to a query of `with_times`; `found`: (time, value) of scrapes by instance and job."""
    series: list[dict[str, Any]] = []
    for (instance, job), scraped in found.items():
        for part, index in (("value", 1), ("time", 0)):
            values = [[float(step), repr(point[index])] for step, point in enumerate(scraped)]
            series.append({"metric": {"instance": instance, "job": job, "tuneoff_part": part}, "values": values})
    return [series]


def used(
    cpu: Mapping[tuple[str, str], Sequence[tuple[float, float]]],
    memory: Mapping[tuple[str, str], Sequence[tuple[float, float]]] | None = None,
    nodes: Sequence[str] = (),
    offset: float = 0.0,
) -> tuple[list[NodeSample], list[str]]:
    return node_use(
        lambda query: answer(cpu if "node_cpu_seconds_total" in query else memory or {}), nodes, ("instance",), offset
    )


def test_the_samples_lie_at_the_scrapes_on_this_hosts_clock() -> None:
    cpu = {("a:9100", "node"): [(102.0, 5000.0), (117.0, 5010.0), (117.0, 5010.0)]}
    found, problems = used(cpu, {("a:9100", "node"): [(102.0, 3 * GB)]}, offset=2.0)
    assert found == [
        NodeSample(t=100 * GB, node="a", cpu_seconds=0.0),
        NodeSample(t=100 * GB, node="a", memory_bytes=3 * GB),
        NodeSample(t=115 * GB, node="a", cpu_seconds=10.0),
    ]
    assert problems == []


def test_a_node_that_two_jobs_scrape_counts_once_and_two_nodes_are_kept_apart() -> None:
    cpu = {
        ("a:9100", "node"): [(0.0, 50.0), (10.0, 60.0)],
        ("a:9100", "again"): [(5.0, 55.0), (15.0, 65.0)],
        ("b:9100", "node"): [(0.0, 7.0), (10.0, 8.0)],
    }
    last = {sample.node: sample.cpu_seconds for sample in used(cpu)[0]}
    assert last == {"a": 15.0, "b": 1.0}
    assert {sample.node for sample in used(cpu, nodes=["b"])[0]} == {"b"}


def test_a_node_that_was_started_again_goes_on_from_0_and_is_told() -> None:
    found, problems = used({("a:9100", "node"): [(0.0, 5000.0), (10.0, 5008.0), (20.0, 3.0)]})
    assert [sample.cpu_seconds for sample in found] == [0.0, 8.0, 11.0]
    assert problems == ["CPU time of a: 1 restarts of the counter; what it lost before each is not counted"]


def test_only_the_nodes_that_are_wanted_are_asked_for() -> None:
    """A server may have thousands, and a sum over all their processors takes long."""
    asked: list[str] = []

    def ask(query: str) -> Answers:
        asked.append(query)
        return [[]]

    node_use(ask, ["b-1", "a.example"], ("node",), 0.0)
    node_use(ask, [], ("node",), 0.0)
    assert [query.count(r"node=~`(a\.example|b\-1)(:[0-9]+)?`") for query in asked] == [2, 3, 0, 0]


def test_a_server_without_node_exporter_says_nothing() -> None:
    assert used({}) == ([], [])


def test_a_refusal_of_these_queries_costs_no_energy() -> None:
    with serving(FakePrometheus()) as server:
        node_exporter(server)
        one = PrometheusMeter({"url": server.url, "wait_seconds": 0})
        server.override = lambda endpoint, parameters: (
            failure(422, "execution", "too many samples") if "node_cpu_seconds_total" in parameters["query"] else None
        )
        notes: list[str] = []
        assert told(one, notes)
        (note,) = notes
        assert note.startswith("what the nodes used is not known: ")
        assert "too many samples" in note
        server.override = lambda endpoint, parameters: failure(422, "execution", "too many samples")
        assert not told(one, notes)  # negative control: of the energy it is an error


def told(one: PowerMeter, notes: list[str], within_seconds: float = 10.0) -> Sequence[object]:
    """Return the power samples of a window; what goes wrong is noted."""
    start, end = window()
    then = clock.Anchor(monotonic_ns=time.monotonic_ns() - end + start, wall_ns=start, width_ns=0)
    return collected(
        one, "prometheus", threading.Lock(), then, within_seconds=within_seconds, note=notes.append, take_node=lambda sample: None
    )


class Hanging(PowerMeter):
    """Knows its energy at once, and hangs when it is asked what the nodes used."""

    def __init__(self) -> None:
        self.is_over = threading.Event()

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> list[PowerSample]:
        return [PowerSample(t=start_wall_ns, domain="wall", watts=5.0)]

    def collect_nodes(self, start_wall_ns: int, end_wall_ns: int) -> list[NodeSample]:
        self.is_over.wait(20)
        return []


def test_energy_that_is_known_is_kept_where_the_nodes_use_takes_too_long() -> None:
    one, notes = Hanging(), list[str]()
    try:
        assert len(told(one, notes, within_seconds=0.3)) == 1
    finally:
        one.is_over.set()
    assert notes == ["the power meter prometheus did not answer within 0.3 s after the run: what the nodes used is not known"]
