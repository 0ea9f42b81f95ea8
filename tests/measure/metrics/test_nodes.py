"""What whole nodes used in a run: sums over nodes between samples, with how much of the run these cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from builders.event_logs import run_a
from measure.metrics.test_memory import HEADER, MB, SECOND
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.derived import node_metrics
from tuneoff.measure.evidence import NO_EVIDENCE, Evidence
from tuneoff.measure.spans import jct_ns
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import EnergySeries


@pytest.fixture(scope="module")
def run() -> RunRecord:
    return run_a()


def metrics(
    run: RunRecord,
    cpu: Mapping[str, Sequence[tuple[float, float]]],
    memory: Mapping[str, Sequence[tuple[float, int]]] | None = None,
) -> tuple[MetricValue, MetricValue]:
    """Return both metrics; `cpu`: (seconds, CPU seconds) and `memory`: (seconds, MB) by node."""
    samples = Samples(
        header=HEADER,
        node_cpu={node: EnergySeries([round(t * SECOND) for t, _ in seen], [u for _, u in seen]) for node, seen in cpu.items()},
        node_memory={node: tuple((round(t * SECOND), mb * MB) for t, mb in seen) for node, seen in (memory or {}).items()},
    )
    values = node_metrics(run, Evidence(samples=samples), EnergyAccount())
    return values["nodes.cpu_seconds"], values["nodes.peak_memory"]


def end(run: RunRecord) -> float:
    nanoseconds = jct_ns(run)
    assert nanoseconds is not None
    return nanoseconds / SECOND


def steady(start: float, last: float, processors: float) -> list[tuple[float, float]]:
    """Return samples every 5 s of a node with so many processors in use."""
    count = int((last - start) // 5)
    return [(start + 5 * number, processors * 5 * number) for number in range(count + 1)]


def test_the_cpu_seconds_of_all_nodes_in_the_run_are_summed(run: RunRecord) -> None:
    jct = end(run)
    cpu, _ = metrics(run, {"a": steady(-10, jct + 10, 1.5), "b": steady(-12, jct + 10, 0.25)})
    assert cpu.value == pytest.approx(1.75 * jct)
    assert (cpu.unit, cpu.kind, cpu.coverage) == ("s", "measured", 1.0)


def test_a_node_that_was_not_seen_for_a_part_of_the_run_makes_it_an_estimate(run: RunRecord) -> None:
    jct = end(run)
    cpu, _ = metrics(run, {"a": steady(-10, jct + 10, 1.0), "b": steady(-10, jct / 2, 1.0)})
    assert cpu.kind == "estimated"
    assert cpu.coverage is not None
    assert cpu.coverage < 0.6


def test_the_peak_memory_is_that_of_one_node_while_the_run_ran(run: RunRecord) -> None:
    jct = end(run)
    seen = {"a": [(-1.0, 9000), (1.0, 500), (2.0, 700), (jct + 1, 9000)], "b": [(1.0, 650)]}
    _, memory = metrics(run, {}, seen)
    assert (memory.value, memory.unit, memory.n_samples) == (700, "MB", 3)


def test_what_is_not_known_is_null_with_its_reason(run: RunRecord) -> None:
    for values in (metrics(run, {}), tuple(node_metrics(run, NO_EVIDENCE, EnergyAccount()).values())):
        assert [one.value for one in values] == [None, None]
        assert all(one.reason_if_null for one in values)
    cpu, memory = metrics(run, {"a": [(1.0, 0.0)]}, {"a": [(-5.0, 100)]})
    assert (cpu.value, memory.value) == (None, None)
    assert cpu.reason_if_null == "too few samples of a node's CPU time: none of the run lies between two of them"
    assert memory.reason_if_null == "no sample of a node's memory lies in the run"
