"""What whole nodes used during a run, where a database has recorded it: all programs on them, other tenants included."""

from __future__ import annotations

from tuneoff.measure.attribution.account import LEAST_COVERAGE, NO_SAMPLES, EnergyAccount
from tuneoff.measure.evidence import Evidence
from tuneoff.measure.memory_metrics import MEGABYTE, SAMPLES
from tuneoff.measure.spans import NO_END, jct_ns
from tuneoff.record.metric_value import MetricValue, known, missing
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples

NOT_TOLD = "no database told what whole nodes used; the power meter prometheus asks for it, where node_exporter is scraped"
NO_CPU = "too few samples of a node's CPU time: none of the run lies between two of them"
NO_MEMORY = "no sample of a node's memory lies in the run"


def node_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the CPU seconds of all nodes between the run's start and end, and the greatest memory in use on one of them.

    The first is estimated where the samples of any node cover less than 95 % of the run, null where they cover nothing.
    """
    samples, end_ns = evidence.samples, jct_ns(run)
    if samples is None or end_ns is None or not (samples.node_cpu or samples.node_memory):
        reason = NO_SAMPLES if samples is None else NO_END if end_ns is None else NOT_TOLD
        cpu = missing("s", reason, kind="measured", source=SAMPLES)
        return {"nodes.cpu_seconds": cpu, "nodes.peak_memory": missing("MB", reason, kind="measured", source=SAMPLES)}
    return {"nodes.cpu_seconds": _cpu_seconds(samples, end_ns), "nodes.peak_memory": _peak_memory(samples, end_ns)}


def _cpu_seconds(samples: Samples, end_ns: int) -> MetricValue:
    nodes = samples.node_cpu.values()
    coverage = min((one.coverage(0, end_ns, samples.header.longest_gap_ns) for one in nodes), default=0.0)
    if not coverage:
        return missing("s", NO_CPU, kind="measured", source=SAMPLES)
    return known(
        sum(one.energy(0, end_ns) for one in nodes),
        "s",
        kind="measured" if coverage >= LEAST_COVERAGE else "estimated",
        source=SAMPLES,
        n_samples=sum(len(one.times) for one in nodes),
        coverage=coverage,
    )


def _peak_memory(samples: Samples, end_ns: int) -> MetricValue:
    seen = [value for one in samples.node_memory.values() for t, value in one if 0 <= t <= end_ns]
    if not seen:
        return missing("MB", NO_MEMORY, kind="measured", source=SAMPLES)
    return known(max(seen) / MEGABYTE, "MB", kind="measured", source=SAMPLES, n_samples=len(seen))
