"""What a trial's process used: CPU time of its busy segments, memory as the sampler saw it."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.measure.segments import busy_ns
from tuneoff.record.run_record import AttemptRecord, RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import ProcessUsage

ProcessKey = tuple[int, int]  # pid, start as the kernel has it


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
