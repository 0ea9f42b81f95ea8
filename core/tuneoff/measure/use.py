"""What attempts, workers and supervision used of processors and memory; how much others used, and whether that disturbed the run.

Other programs are all but the run's own process tree (its framework's services included) and tuneoff's supervision. The
run's processors are those that the command may use: all of the host, or those of its affinity or control group. So it is where
slots are pinned too: no sample tells on which of them others were, and what is not pinned moves to where there is room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tuneoff.base.clock import NANOSECONDS
from tuneoff.measure.attribution.account import LEAST_COVERAGE, NO_SAMPLES, EnergyAccount
from tuneoff.measure.attribution.method import NO_COORDINATOR
from tuneoff.measure.power.tree import LARGE_BYTES
from tuneoff.measure.spans import NO_END, busy_ns, foreign_attempts, jct_ns, partition, started_attempts
from tuneoff.record.metric_value import MetricValue, metric_value, metric_value_or, missing
from tuneoff.record.run_record import AttemptRecord, FlagRecord, RunRecord
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import ProcessUsage

MEGABYTE = 1e6
SAMPLES = "samples"
NOT_SEEN = "no sample saw a process that trained"
NO_USE = "the sampler recorded no use of processes"
ProcessKey = tuple[int, int]  # pid, start as the kernel has it
DISTURBED = "disturbed"  # flag
SHARE = "host.other_cpu_share"
LARGEST_SHARE = 10.0  # % of the time of the run's processors; more is flagged
LEAST_STEP_NS = NANOSECONDS  # a shorter trial step is no window: the whole job is
TICKS_SECONDS = 0.02  # per processor: kernels count the host's time in ticks of up to 10 ms, so as little is no sign of anybody
NO_HOST_USE = "the use of the host was not sampled"
ELSEWHERE = "trials ran on another host or in pods, where nobody sampled"


def memory_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return peaks in MB (10^6 bytes), and the CPU of tuneoff's supervision, in s and over that of the job.

    `memory.peak_rss` is the greatest peak that a trial's process read of itself (VmHWM, which sampling cannot miss); the others
    are the greatest that a sample saw, so real peaks may be higher. Those of trees hold what a trial's process has started too,
    as workers that load data.
    """
    samples = evidence.samples
    tree, looks, unseen = TreePeaks([], []), None, NO_SAMPLES
    tree_rss: list[int] = []
    suite_seconds = _suite_cpu(samples)
    if samples is not None:
        tree, looks, unseen = trial_tree_peaks(run, samples), len(samples.usage), NOT_SEEN
        tree_rss = [sample.rss_bytes for sample in samples.usage if sample.rss_bytes]
    suite_share = metric_value_or(
        100 * suite_seconds.value / account.cpu_seconds if suite_seconds.value is not None and account.cpu_seconds else None,
        "%",
        suite_seconds.reason_if_null or "the CPU time of the job is not known",
        source=SAMPLES,
        n_samples=suite_seconds.n_samples,
    )
    return {
        "memory.peak_rss": _peak_rss(run, samples),
        "memory.peak_pss": _peak_pss(run, samples),
        "memory.trial_tree_peak_rss": _peak(tree.rss_bytes, unseen, looks),
        "memory.trial_tree_peak_pss": _peak(tree.pss_bytes, f"{unseen}{' with its PSS' if looks is not None else ''}", looks),
        "memory.tree_peak_rss": _peak(tree_rss, NO_SAMPLES if samples is None else NO_USE),
        "memory.driver_peak_rss": _driver_peak(run, samples),
        "suite.sampler_cpu_share": _sampler_share(samples),
        "suite.cpu_seconds": suite_seconds,
        "suite.cpu_share": suite_share,
    }


def _peak_rss(run: RunRecord, samples: Samples | None) -> MetricValue:
    read = [attempt.peak_rss_bytes for _, attempt in started_attempts(run) if attempt.peak_rss_bytes is not None]
    if read:
        return metric_value(max(read) / MEGABYTE, "MB", kind="measured", source="trial_ended", n_samples=len(read))
    if samples is None:
        return missing("MB", f"no trial could say it at its end, and {NO_SAMPLES}", kind="measured")
    seen = [usage.rss_bytes for usage in usages_of(samples, process_keys(run, samples.header.host)) if usage.rss_bytes]
    return _peak(seen, NOT_SEEN)


def _peak_pss(run: RunRecord, samples: Samples | None) -> MetricValue:
    if samples is None:
        return missing("MB", NO_SAMPLES, kind="measured", source=SAMPLES)
    usages = usages_of(samples, process_keys(run, samples.header.host))
    return _peak([usage.pss_bytes for usage in usages if usage.pss_bytes is not None], f"{NOT_SEEN} with its PSS")


def _driver_peak(run: RunRecord, samples: Samples | None) -> MetricValue:
    if samples is None:
        return missing("MB", NO_SAMPLES, kind="measured", source=SAMPLES)
    named = [name.rsplit(":", 2) for name in run.coordinators]
    keys = {(int(pid), int(started)) for host, pid, started in named if host == samples.header.host}
    return _peak([usage.rss_bytes for usage in usages_of(samples, keys) if usage.rss_bytes], NO_COORDINATOR)


def _peak(values: list[int], reason: str, looks: int | None = None) -> MetricValue:
    if not values:
        return missing("MB", reason, kind="measured", source=SAMPLES)
    return metric_value(max(values) / MEGABYTE, "MB", kind="measured", source=SAMPLES, n_samples=looks or len(values))


def _sampler_share(samples: Samples | None) -> MetricValue:
    """Return the CPU time of the sampling thread in % of one core, between the first and the last sample."""
    if samples is None:
        return missing("%", NO_SAMPLES, source=SAMPLES)
    usage = samples.usage
    if len(usage) < 2:
        return missing("%", NO_USE, source=SAMPLES)
    used, elapsed = usage[-1].own_cpu_ns - usage[0].own_cpu_ns, usage[-1].t - usage[0].t
    return metric_value(100 * max(0, used) / elapsed, "%", source=SAMPLES, n_samples=len(usage))


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
    return metric_value((max(seen) - min(seen)) / 1e9, "s", source=SAMPLES, n_samples=len(seen))


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
    for _, attempt in started_attempts(run):
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


class TreePeaks(NamedTuple):
    """What the processes that trained had, each with all that it started, at the moments when that rose above all before.

    `pss_bytes`: at the moments when each process of `LARGE_BYTES` had been looked at; of smaller ones RSS is taken.
    """

    rss_bytes: list[int]
    pss_bytes: list[int]


def trial_tree_peaks(run: RunRecord, samples: Samples) -> TreePeaks:
    """Return what trials had of memory, their children included. A process stays with the one below which it was first seen.

    A child counts from the second look on at which it lives: one that was just forked, and runs another program at once, has
    its parent's pages alone.
    """
    trained = process_keys(run, samples.header.host)
    alive: dict[int, tuple[ProcessUsage, int]] = {}  # by pid: as it was last seen, with its PSS; pid of the one that trains
    totals: dict[int, int] = defaultdict(int)  # RSS, by the pid of the one that trains
    peaks = TreePeaks([], [])
    for sample in samples.usage:
        for pid, started in sample.gone:
            if pid in alive and alive[pid][0].started_ns == started:
                gone, root = alive.pop(pid)
                totals[root] -= gone.rss_bytes
        new: dict[int, int] = defaultdict(int)  # RSS of children that no look before saw, by the pid of the one that trains
        for usage in sample.processes:
            before, root = alive.pop(usage.pid, (None, 0))
            if before is not None:
                totals[root] -= before.rss_bytes
            if before is None or before.started_ns != usage.started_ns:
                is_trained = (usage.pid, usage.started_ns) in trained
                root = usage.pid if is_trained else alive[usage.parent][1] if usage.parent in alive else 0
                new[root] += usage.rss_bytes if root != usage.pid else 0
            elif usage.pss_bytes is None:
                usage = msgspec.structs.replace(usage, pss_bytes=before.pss_bytes)
            if root:
                alive[usage.pid] = usage, root
                totals[root] += usage.rss_bytes
        _note(peaks.rss_bytes, max((total - new[root] for root, total in totals.items()), default=0))
        for root in {alive[usage.pid][1] for usage in sample.processes if usage.pss_bytes is not None and usage.pid in alive}:
            tree = [usage for usage, top in alive.values() if top == root]
            if all(usage.pss_bytes is not None or usage.rss_bytes < LARGE_BYTES for usage in tree):
                _note(peaks.pss_bytes, sum(usage.rss_bytes if usage.pss_bytes is None else usage.pss_bytes for usage in tree))
    return peaks


def _note(peaks: list[int], value: int) -> None:
    if value > (peaks[-1] if peaks else 0):
        peaks.append(value)


class _Others(NamedTuple):
    window: str
    seconds: float  # of the window
    processors: int
    cpu_seconds: float  # of other programs
    coverage: float
    looks: int

    @property
    def share(self) -> float:
        return 100 * self.cpu_seconds / (self.processors * self.seconds)


def disturbance_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return what other programs used of the run's processors in its trial step, in %; below 1 s, in the whole job."""
    others = _others(run, evidence, account)
    if isinstance(others, str):
        return {SHARE: missing("%", others, source="samples")}
    source, share = f"samples in {others.window}", max(0.0, others.share)  # ticks that lag behind may make it negative
    return {SHARE: metric_value(share, "%", source=source, n_samples=others.looks, coverage=others.coverage)}


def disturbance_flags(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> tuple[FlagRecord, ...]:
    """Return the flag of a run whose processors other programs used by more than 10 %, and by more than ticks may be wrong."""
    others = _others(run, evidence, account)
    if isinstance(others, str) or others.share <= LARGEST_SHARE:
        return ()
    limit = LARGEST_SHARE / 100 * others.processors * others.seconds
    if others.cpu_seconds <= limit + TICKS_SECONDS * others.processors:
        return ()
    processors = "its only processor" if others.processors == 1 else f"its {others.processors} processors"
    used = f"other programs used {others.share:.0f} % of {processors} in {others.window}"
    text = f"{used}: its times are longer, by nobody knows how much"
    return (FlagRecord(name=DISTURBED, text=text),)


def _others(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> _Others | str:
    """Return what others used in the run's window, or why that is not known."""
    samples, used = evidence.samples, account.other_cpu
    if samples is None:
        return NO_SAMPLES
    if used is None:
        return NO_HOST_USE
    if foreign_attempts(run, samples.header.host):
        return ELSEWHERE
    part, end_ns = partition(run)["trial"], jct_ns(run)
    if part is not None and part[1] - part[0] >= LEAST_STEP_NS:
        name, window = "the trial step", part
    elif end_ns:
        name, window = "the whole job", (0, end_ns)
    else:
        return NO_END
    start, end = max(window[0], used.times[0]), min(window[1], used.times[-1])
    coverage = max(0, end - start) / (window[1] - window[0])
    if coverage < LEAST_COVERAGE:
        return f"samples cover {coverage:.0%} of {name}"
    return _Others(
        window=name,
        seconds=(end - start) / NANOSECONDS,
        processors=samples.header.usable_cpus or samples.header.cpus,
        cpu_seconds=used.energy(start, end),
        coverage=coverage,
        looks=len(used.cuts(start, end)),
    )
