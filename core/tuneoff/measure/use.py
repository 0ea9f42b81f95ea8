"""What attempts, workers and supervision used of processors and memory; how much others used, and whether that disturbed the run.

Other programs are all but the run's own process tree (its framework's services included) and tuneoff's supervision. The
run's processors are those that the command may use: all of the host, or those of its affinity or control group. So it is where
slots are pinned too: no sample tells on which of them others were, and what is not pinned moves to where there is room.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set

import msgspec

from tuneoff.base.clock import NANOSECONDS
from tuneoff.measure.attribution.account import LEAST_COVERAGE, NO_SAMPLES, EnergyAccount
from tuneoff.measure.attribution.method import NO_COORDINATOR
from tuneoff.measure.power.tree import LARGE_BYTES
from tuneoff.measure.spans import (
    NO_END,
    ProcessKey,
    busy_ns,
    foreign_attempts,
    jct_ns,
    partition,
    process_key,
    started_attempts,
)
from tuneoff.record.metric_value import MetricValue, metric_value, metric_value_or, missing
from tuneoff.record.run_record import AttemptRecord, FlagRecord, RunRecord
from tuneoff.record.samples.reader import Evidence
from tuneoff.record.samples.schema import ProcessUsage, UsageSample

MEGABYTE = 1e6
SAMPLES = "samples"
NOT_SEEN = "no sample saw a process that trained"
NO_PSS = f"{NOT_SEEN} with its PSS"
NO_USE = "the sampler recorded no use of processes"
DISTURBED = "disturbed"  # flag
SHARE = "host.other_cpu_share"
LARGEST_SHARE = 10.0  # % of the time of the run's processors; more is flagged
LEAST_STEP_NS = NANOSECONDS  # a shorter trial step is no window: the whole job is
TICKS_SECONDS = 0.02  # per processor: kernels count the host's time in ticks of up to 10 ms, so as little is no sign of anybody
NO_HOST_USE = "the use of the host was not sampled"
NO_DEVICE_MEMORY = "no sample saw memory of the slot's device in its processes"
COPIES = "copies of the job used the machine at the same time"
ELSEWHERE = "trials ran on another host or in pods, which were not sampled"


def memory_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return peaks in MB (10^6 bytes), and the CPU of tuneoff's supervision, in s and over that of the job.

    `memory.peak_rss` is the highest peak that a trial's process read of itself (VmHWM, which sampling cannot miss); the others
    are the highest that a sample saw, so real peaks may be higher. Those of trees hold what a trial's process has started too,
    as workers that load data. `suite.sampler_cpu_share`: the sampling thread's CPU time in % of one core, `suite.cpu_seconds`: of
    the process that supervises, sampling included; both between the first and the last sample.
    """
    samples = evidence.samples
    usage = samples.usage if samples is not None else ()
    host, supervisor = (samples.header.host, samples.header.supervisor) if samples is not None else ("", "")
    none = NO_SAMPLES if samples is None else ""  # why there is no value at all
    read = [attempt.peak_rss_bytes for _, attempt in started_attempts(run) if attempt.peak_rss_bytes is not None]
    trained = {process_key(attempt.process or "", host) for _, attempt in started_attempts(run)}
    of_trials = list(_usages_of(usage, trained))
    tree_rss, tree_pss = _trial_tree_peaks(usage, trained)
    of_drivers = _usages_of(usage, {process_key(name, host) for name in run.coordinators})
    sampler_ns, elapsed_ns = (usage[-1].own_cpu_ns - usage[0].own_cpu_ns, usage[-1].t - usage[0].t) if usage else (0, 0)
    suite_ns = [seen.cpu_ns for seen in _usages_of(usage, {process_key(supervisor, host)})]
    suite_seconds = (max(suite_ns) - min(suite_ns)) / 1e9 if len(suite_ns) > 1 else None
    no_suite = f"{'fewer than two samples saw' if supervisor else 'the samples do not name'} the process that supervised"
    suite_share = 100 * suite_seconds / account.cpu_seconds if suite_seconds is not None and account.cpu_seconds else None
    no_share = no_suite if suite_seconds is None else "the CPU time of the job is not known"
    if read:
        own_peak = metric_value(max(read) / MEGABYTE, "MB", kind="measured", source="trial_ended", n_samples=len(read))
    elif samples is None:
        own_peak = missing("MB", f"no trial read it at its end, and {NO_SAMPLES}", kind="measured", source="events")
    else:
        own_peak = _peak([seen.rss_bytes for seen in of_trials if seen.rss_bytes], NOT_SEEN)
    return {
        "memory.peak_rss": own_peak,
        "memory.peak_pss": _peak([seen.pss_bytes for seen in of_trials if seen.pss_bytes is not None], none or NO_PSS),
        "memory.trial_tree_peak_rss": _peak(tree_rss, none or NOT_SEEN, len(usage)),
        "memory.trial_tree_peak_pss": _peak(tree_pss, none or NO_PSS, len(usage)),
        "memory.tree_peak_rss": _peak([sample.rss_bytes for sample in usage if sample.rss_bytes], none or NO_USE),
        "memory.driver_peak_rss": _peak([seen.rss_bytes for seen in of_drivers if seen.rss_bytes], none or NO_COORDINATOR),
        "suite.sampler_cpu_share": metric_value_or(
            100 * max(0, sampler_ns) / elapsed_ns if len(usage) > 1 else None,
            "%",
            none or NO_USE,
            source=SAMPLES,
            n_samples=len(usage),
        ),
        "suite.cpu_seconds": metric_value_or(suite_seconds, "s", none or no_suite, source=SAMPLES, n_samples=len(suite_ns)),
        "suite.cpu_share": metric_value_or(suite_share, "%", none or no_share, source=SAMPLES, n_samples=len(suite_ns)),
    }


def device_memory(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return for each slot with a device the most of its memory, in MB, that a sample saw the slot's processes have."""
    samples, workers = evidence.samples, run.run_spec().experiment.workers
    starts: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by pid: when its attempts began, and on which slots
    for _, attempt in started_attempts(run):
        key = process_key(attempt.process or "", samples.header.host) if samples is not None else None
        if key is not None and attempt.slot is not None and attempt.started_ns is not None:
            bisect.insort(starts[key[0]], (attempt.started_ns, attempt.slot))
    peaks: dict[int, list[int]] = defaultdict(list)
    for sample in samples.usage if samples is not None else ():
        for domain, pid, used in sample.gpu_memory:
            index = bisect.bisect_right(starts[pid], (sample.t, workers.count)) - 1
            slot = starts[pid][index][1] if index >= 0 else workers.count
            if domain == f"gpu-{workers.device_of(slot)}":
                peaks[slot].append(used)
    slots = range(workers.count) if workers.devices else ()
    return {f"memory.device_peak[{slot}]": _peak(peaks[slot], NO_DEVICE_MEMORY) for slot in slots}


def _peak(values: list[int], reason: str, looks: int | None = None) -> MetricValue:
    if not values:
        return missing("MB", reason, kind="measured", source=SAMPLES)
    return metric_value(max(values) / MEGABYTE, "MB", kind="measured", source=SAMPLES, n_samples=looks or len(values))


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


def _usages_of(samples: Sequence[UsageSample], keys: Set[ProcessKey | None]) -> Iterator[ProcessUsage]:
    """Yield what was seen of these processes."""
    for sample in samples:
        for usage in sample.processes:
            if (usage.pid, usage.started_ns) in keys:
                yield usage


def _trial_tree_peaks(samples: Sequence[UsageSample], trained: Set[ProcessKey | None]) -> tuple[list[int], list[int]]:
    """Return (RSS, PSS) in bytes of the processes that trained, each with all that it started, when it rose above all before.

    PSS at the moments when each process of `LARGE_BYTES` had been looked at; of smaller ones RSS is taken. A process stays with
    the one below which it was first seen. A child counts from the second look on at which it lives: one that was just forked,
    and runs another program at once, has its parent's pages alone.
    """
    alive: dict[int, tuple[ProcessUsage, int]] = {}  # by pid: as it was last seen, with its PSS; pid of the one that trains
    totals: dict[int, int] = defaultdict(int)  # RSS, by the pid of the one that trains
    rss_peaks: list[int] = []
    pss_peaks: list[int] = []
    for sample in samples:
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
        _note(rss_peaks, max((total - new[root] for root, total in totals.items()), default=0))
        for root in {alive[usage.pid][1] for usage in sample.processes if usage.pss_bytes is not None and usage.pid in alive}:
            tree = [usage for usage, top in alive.values() if top == root]
            if all(usage.pss_bytes is not None or usage.rss_bytes < LARGE_BYTES for usage in tree):
                _note(pss_peaks, sum(usage.rss_bytes if usage.pss_bytes is None else usage.pss_bytes for usage in tree))
    return rss_peaks, pss_peaks


def _note(peaks: list[int], value: int) -> None:
    if value > (peaks[-1] if peaks else 0):
        peaks.append(value)


def disturbance(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> tuple[MetricValue, tuple[FlagRecord, ...]]:
    """Return what other programs used of the run's processors in its trial step, in %; below 1 s, in the whole job.

    With it the flag of a run where that is more than 10 %, and more than clock ticks may be wrong.
    """
    samples, used = evidence.samples, account.other_cpu
    part, end_ns = partition(run)["trial"], jct_ns(run)
    is_step = part is not None and part[1] - part[0] >= LEAST_STEP_NS
    name, window = ("the trial step", part) if is_step else ("the whole job", (0, end_ns) if end_ns else None)
    reason = NO_SAMPLES if samples is None else NO_HOST_USE
    if samples is not None and used is not None:
        is_elsewhere = bool(foreign_attempts(run, samples.header.host))
        reason = ELSEWHERE if is_elsewhere else COPIES if run.run_spec().experiment.copies > 1 else "" if window else NO_END
    if reason or samples is None or used is None or window is None:
        return missing("%", reason, source=SAMPLES), ()
    start, end = max(window[0], used.times[0]), min(window[1], used.times[-1])
    coverage = max(0, end - start) / (window[1] - window[0])
    if coverage < LEAST_COVERAGE:
        return missing("%", f"samples cover {coverage:.0%} of {name}", source=SAMPLES), ()
    processors = samples.header.usable_cpus or samples.header.cpus
    available = processors * (end - start) / NANOSECONDS
    cpu_seconds, looks = used.energy(start, end), len(used.cuts(start, end))
    share = 100 * cpu_seconds / available
    source = f"samples in {name}"  # ticks that lag behind may make a share negative
    value = metric_value(max(0.0, share), "%", source=source, n_samples=looks, coverage=coverage)
    if share <= LARGEST_SHARE or cpu_seconds <= LARGEST_SHARE / 100 * available + TICKS_SECONDS * processors:
        return value, ()
    of_run = "its only processor" if processors == 1 else f"its {processors} processors"
    text = f"other programs used {share:.0f} % of {of_run} in {name}: its times are longer by an unknown amount"
    return value, (FlagRecord(name=DISTURBED, text=text),)
