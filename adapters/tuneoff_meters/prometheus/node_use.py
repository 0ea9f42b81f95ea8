"""What whole nodes used, by node_exporter's word: the time of their processors and their memory, at the times of the scrapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tuneoff.base.clock import NANOSECONDS
from tuneoff.meter import NodeSample
from tuneoff_meters.prometheus.nodes import host_names, node_matcher
from tuneoff_meters.prometheus.series import merged, points, samples, with_times
from tuneoff_meters.prometheus.sources import UNITS

# Labels other than `cpu` and `mode` are kept, or the same node seen by two jobs would count twice. All series of a scrape have
# its time, which a sum does not keep. NODES stands for a matcher: a server may have thousands.
_CPU = 'sum without (cpu, mode) (node_cpu_seconds_total{mode!~"idle|iowait|steal|guest.*",NODES})'
_CPU_TIME = 'max without (cpu, mode) (timestamp(node_cpu_seconds_total{mode="idle",NODES}))'
_MEMORY = "node_memory_MemTotal_bytes{NODES} - node_memory_MemAvailable_bytes{NODES}"
_MEMORY_TIME = "timestamp(node_memory_MemAvailable_bytes{NODES})"

Ask = Callable[[str], Sequence[Sequence[Mapping[str, Any]]]]  # a range query -> the answers of successive windows


def node_use(
    ask: Ask, nodes: Collection[str], host_labels: Sequence[str], offset_seconds: float
) -> tuple[list[NodeSample], list[str]]:
    """Return the samples of these nodes (none: of all) on this host's wall clock, in order of time, and what was strange.

    `nodes` are names as the domains have them. Empty where the server has no such metrics.

    Raises:
        MeterError: the server does not answer or refuses.
    """
    found: list[NodeSample] = []
    problems: list[str] = []
    matcher = node_matcher(nodes, host_labels[0]) if nodes else ""
    cpu, memory = (
        with_times(values.replace("NODES", matcher), times.replace("NODES", matcher))
        for values, times in ((_CPU, _CPU_TIME), (_MEMORY, _MEMORY_TIME))
    )
    for node, scraped in _by_node(ask(cpu), nodes, host_labels).items():
        # a counter of CPU seconds is read as one of joules is: it may start again, and a processor gives a second a second
        taken, strange = samples(f"CPU time of {node}", scraped, UNITS["joules"], offset_seconds)
        found.extend(NodeSample(t=one.t, node=node, cpu_seconds=one.joules) for one in taken)
        problems.extend(strange)
    for node, scraped in _by_node(ask(memory), nodes, host_labels).items():
        found.extend(
            NodeSample(t=round((time - offset_seconds) * NANOSECONDS), node=node, memory_bytes=round(value))
            for time, value in scraped
            if value >= 0
        )
    return sorted(found, key=lambda sample: sample.t), problems


def _by_node(
    answers: Sequence[Sequence[Mapping[str, Any]]], nodes: Collection[str], host_labels: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    series = points(answers)
    parts = defaultdict(list)
    for one, node in zip(series, host_names([one.labels for one in series], host_labels), strict=True):
        if node and (not nodes or node in nodes):
            parts[node].append(one)
    return {node: merged(those) for node, those in parts.items()}
