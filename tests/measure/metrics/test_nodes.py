"""What whole nodes used in a run: sums over nodes between samples, with how much of the run these cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from measure.metrics.test_memory import HEADER, MB, RUN, SECOND
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.derived import node_metrics
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.samples.reader import NO_EVIDENCE, Evidence, Samples
from tuneoff.record.samples.schema import EnergySeries

END = 176.0  # s of the run


def metrics(
    cpu: Mapping[str, Sequence[tuple[float, float]]],
    memory: Mapping[str, Sequence[tuple[float, int]]] | None = None,
) -> tuple[MetricValue, MetricValue]:
    """Return both metrics; `cpu`: (seconds, CPU seconds) and `memory`: (seconds, MB) by node."""
    samples = Samples(
        header=HEADER,
        node_cpu={node: EnergySeries([round(t * SECOND) for t, _ in seen], [u for _, u in seen]) for node, seen in cpu.items()},
        node_memory={node: tuple((round(t * SECOND), mb * MB) for t, mb in seen) for node, seen in (memory or {}).items()},
    )
    values = node_metrics(RUN, Evidence(samples=samples), EnergyAccount())
    return values["nodes.cpu_seconds"], values["nodes.peak_memory"]


def steady(start: float, last: float, processors: float) -> list[tuple[float, float]]:
    """Return samples every 5 s of a node with so many processors in use."""
    count = int((last - start) // 5)
    return [(start + 5 * number, processors * 5 * number) for number in range(count + 1)]


def test_the_cpu_seconds_of_all_nodes_in_the_run_are_summed() -> None:
    cpu, _ = metrics({"a": steady(-10, END + 10, 1.5), "b": steady(-12, END + 10, 0.25)})
    assert cpu.value == pytest.approx(1.75 * END)
    assert (cpu.unit, cpu.kind, cpu.coverage) == ("s", "measured", 1.0)


def test_a_node_that_was_not_seen_for_a_part_of_the_run_makes_it_an_estimate() -> None:
    cpu, _ = metrics({"a": steady(-10, END + 10, 1.0), "b": steady(-10, END / 2, 1.0)})
    assert cpu.kind == "estimated"
    assert cpu.coverage is not None
    assert cpu.coverage < 0.6


def test_the_peak_memory_is_that_of_one_node_while_the_run_ran() -> None:
    seen = {"a": [(-1.0, 9000), (1.0, 500), (2.0, 700), (END + 1, 9000)], "b": [(1.0, 650)]}
    _, memory = metrics({}, seen)
    assert (memory.value, memory.unit, memory.n_samples) == (700, "MB", 3)


def test_what_is_not_known_is_null_with_its_reason() -> None:
    for values in (metrics({}), tuple(node_metrics(RUN, NO_EVIDENCE, EnergyAccount()).values())):
        assert [one.value for one in values] == [None, None]
        assert all(one.reason_if_null for one in values)
    cpu, memory = metrics({"a": [(1.0, 0.0)]}, {"a": [(-5.0, 100)]})
    assert (cpu.value, memory.value) == (None, None)
    assert cpu.reason_if_null == "too few samples of a node's CPU time: none of the run lies between two of them"
    assert memory.reason_if_null == "no sample of a node's memory lies in the run"
