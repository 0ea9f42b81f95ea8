"""What attempts and workers used of processors and memory, and the metrics of memory."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.measure.attribution.account import NO_SAMPLES, EnergyAccount
from tuneoff.measure.evidence import Evidence
from tuneoff.measure.spans import busy_ns
from tuneoff.record.metric_value import MetricValue, known, missing
from tuneoff.record.run_record import AttemptRecord, RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import ProcessUsage

MEGABYTE = 1e6
SAMPLES = "samples"
NOT_SEEN = "no sample saw a process that trained"
NO_USE = "the sampler recorded no use of processes"
ProcessKey = tuple[int, int]  # pid, start as the kernel has it


def memory_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return peaks in MB (10^6 bytes), and the CPU of tuneoff's supervision.

    `memory.peak_rss` is the greatest peak that a trial's process read of itself (VmHWM, which sampling cannot miss);
    `peak_pss` and `tree_peak_rss` are the greatest that a sample saw, so real peaks may be higher.
    """
    samples = evidence.samples
    return {
        "memory.peak_rss": _peak_rss(run, samples),
        "memory.peak_pss": _peak_pss(run, samples),
        "memory.tree_peak_rss": _tree_peak(samples),
        "suite.sampler_cpu_share": _sampler_share(samples),
        "suite.cpu_seconds": _suite_cpu(samples),
    }


def _peak_rss(run: RunRecord, samples: Samples | None) -> MetricValue:
    read = [attempt.peak_rss_bytes for attempt in started_attempts(run) if attempt.peak_rss_bytes is not None]
    if read:
        return known(max(read) / MEGABYTE, "MB", kind="measured", source="trial_ended", n_samples=len(read))
    if samples is None:
        return missing("MB", f"no trial could say it at its end, and {NO_SAMPLES}", kind="measured")
    seen = [usage.rss_bytes for usage in usages_of(samples, process_keys(run, samples.header.host)) if usage.rss_bytes]
    return _peak(seen, NOT_SEEN)


def _peak_pss(run: RunRecord, samples: Samples | None) -> MetricValue:
    if samples is None:
        return missing("MB", NO_SAMPLES, kind="measured", source=SAMPLES)
    usages = usages_of(samples, process_keys(run, samples.header.host))
    return _peak([usage.pss_bytes for usage in usages if usage.pss_bytes is not None], f"{NOT_SEEN} with its PSS")


def _tree_peak(samples: Samples | None) -> MetricValue:
    if samples is None:
        return missing("MB", NO_SAMPLES, kind="measured", source=SAMPLES)
    return _peak([sample.rss_bytes for sample in samples.usage if sample.rss_bytes], NO_USE)


def _peak(values: list[int], reason: str) -> MetricValue:
    if not values:
        return missing("MB", reason, kind="measured", source=SAMPLES)
    return known(max(values) / MEGABYTE, "MB", kind="measured", source=SAMPLES, n_samples=len(values))


def _sampler_share(samples: Samples | None) -> MetricValue:
    """Return the CPU time of the sampling thread in % of one core, between the first and the last sample."""
    if samples is None:
        return missing("%", NO_SAMPLES, source=SAMPLES)
    usage = samples.usage
    if len(usage) < 2:
        return missing("%", NO_USE, source=SAMPLES)
    used, elapsed = usage[-1].own_cpu_ns - usage[0].own_cpu_ns, usage[-1].t - usage[0].t
    return known(100 * max(0, used) / elapsed, "%", source=SAMPLES, n_samples=len(usage))


def _suite_cpu(samples: Samples | None) -> MetricValue:
    """Return the CPU seconds of the process that supervises the run, sampling included, between its first and last sight."""
    if samples is None:
        return missing("s", NO_SAMPLES, source=SAMPLES)
    supervisor = samples.header.supervisor
    if not supervisor:
        return missing("s", "the samples do not name the process that supervised", source=SAMPLES)
    _, pid, started = supervisor.rsplit(":", 2)
    seen = [usage.cpu_ns for usage in usages_of(samples, {(int(pid), int(started))})]
    if len(seen) < 2:
        return missing("s", "fewer than two samples saw the process that supervised", source=SAMPLES)
    return known((max(seen) - min(seen)) / 1e9, "s", source=SAMPLES, n_samples=len(seen))


def started_attempts(run: RunRecord) -> Iterator[AttemptRecord]:
    """Yield the attempts that a process took up."""
    for trial in run.trials:
        for attempt in trial.attempts:
            if attempt.started_ns is not None:
                yield attempt


def busy_cpu(attempt: AttemptRecord) -> tuple[int, int] | None:
    """Return (CPU time, busy time) of an attempt in ns, what it used while it waited in `report` left out; None if unknown.

    Where an end of a wait has no reading, its CPU time stays in: it is little, and never negative.
    """
    if attempt.cpu_ns is None or attempt.started_ns is None:
        return None
    waiting = sum(
        max(0, epoch.reported_cpu_ns - epoch.cpu_ns)
        for epoch in attempt.epochs
        if epoch.cpu_ns is not None and epoch.reported_cpu_ns is not None
    )
    return max(0, attempt.cpu_ns - waiting), busy_ns(attempt)


def process_keys(run: RunRecord, host: str) -> set[ProcessKey]:
    """Return the processes of a host that trained."""
    keys = set()
    for attempt in started_attempts(run):
        if attempt.process is not None:
            name, pid, started = attempt.process.rsplit(":", 2)
            if name == host:
                keys.add((int(pid), int(started)))
    return keys


def usages_of(samples: Samples, keys: set[ProcessKey]) -> Iterator[ProcessUsage]:
    """Yield what was seen of these processes."""
    for sample in samples.usage:
        for usage in sample.processes:
            if (usage.pid, usage.started_ns) in keys:
                yield usage
