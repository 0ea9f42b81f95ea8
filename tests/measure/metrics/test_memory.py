"""Memory of trials with what they started, and the use of nodes that another meter watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from builders.event_logs import run_a
from builders.worked_examples import header
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.derived import node_metrics
from tuneoff.measure.use import memory_metrics
from tuneoff.record.metric_value import Metrics, MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import NO_EVIDENCE, Evidence, Samples
from tuneoff.record.samples.schema import EnergySeries, ProcessUsage, UsageSample

SECOND = 1_000_000_000
MB = 1_000_000
HEADER = header("none", "estimated", supervisor="h:7:70")
RUN = run_a()


def of(evidence: Evidence, run: RunRecord = RUN) -> Metrics:
    return memory_metrics(run, evidence, EnergyAccount())


def in_trees(*looks: tuple[ProcessUsage, ...], gone: tuple[tuple[int, int], ...] = ()) -> Metrics:
    """Return the memory metrics of looks at processes, a second apart; `gone`: after the first."""
    usage = tuple(
        UsageSample(t=number * SECOND, busy_ns=0, processes=processes, gone=gone if number == 1 else ())
        for number, processes in enumerate(looks)
    )
    return of(Evidence(samples=Samples(header=HEADER, usage=usage)))


def test_what_a_trial_started_counts_with_it_and_what_it_did_not_start_does_not() -> None:
    """A trial's process of 400 MB has a child of 300 MB, and that one a child of 20 MB; pages are shared."""
    name = RUN.trials[0].attempts[0].process
    assert name is not None
    _, pid, started = (int(part) if part.isdigit() else 0 for part in name.rsplit(":", 2))
    worker = ProcessUsage(pid, started, 1, 0, 0, 400 * MB, None)
    child, below = ProcessUsage(501, 5, pid, 0, 0, 300 * MB, None), ProcessUsage(502, 6, 501, 0, 0, 20 * MB, None)
    other = ProcessUsage(8, 80, 1, 0, 0, 9000 * MB, 9000 * MB)
    values = in_trees((worker, other), (child, below), ())
    assert values["memory.peak_rss"].value == 400
    assert values["memory.trial_tree_peak_rss"].value == 720
    assert values["memory.trial_tree_peak_pss"].value is None, "nobody looked at the pages of the large ones"
    looked = [(msgspec.structs.replace(one, pss_bytes=pss * MB),) for one, pss in ((child, 200), (worker, 350))]
    assert in_trees((worker, child, below), *looked)["memory.trial_tree_peak_pss"].value == 200 + 350 + 20
    assert in_trees((worker, child), (worker,), ())["memory.trial_tree_peak_rss"].value == 700
    just_forked = in_trees((worker, child), (worker,), gone=((501, 5),))  # it runs another program before the next look
    assert just_forked["memory.trial_tree_peak_rss"].value == 400
    again = ProcessUsage(501, 7, 1, 0, 0, 5000 * MB, None)  # the child's pid, given to a process of others
    assert in_trees((worker, child), (again, worker), gone=((501, 5),))["memory.trial_tree_peak_rss"].value == 400


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
