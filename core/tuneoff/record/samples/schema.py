"""The lines of a run's `power.jsonl`: a header, then power samples and usage samples in the order of their times.

Times are the host's monotonic nanoseconds, as in event files. The same format is what the `replay` meter reads.

They are written by one `os.write` each, so a kill costs at most the last one, and a full disk only lines.

The energy of a domain over time is cumulative, linear between samples, and unknown outside of them.
"""

from __future__ import annotations

import bisect
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from tuneoff.base import clock
from tuneoff.base.files import append_line
from tuneoff.base.layout import SAMPLES

SCHEMA_VERSION = 1
LATE = 3  # intervals between two readings or looks, where the sampler had to wait for its turn

MeterKind = Literal["measured", "estimated"]
MOST_NOTES = 20  # of different texts: what fails again and again may say something new each time

_encode = msgspec.json.Encoder().encode
Interval = tuple[int, int]  # start, end in ns since the run's start
NEAREST_NS = 1_000_000_000  # over so long the power at an end is a mean: counters are read in steps


class Coefficients(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The model meter's E = joules_per_cpu_second · CPU seconds + watts_per_core · reserved core seconds, with bounds.

    Watts per hardware thread, whole server included: at active idle (`watts_per_core`), and what full load adds to it.
    """

    joules_per_cpu_second: float
    watts_per_core: float
    low: tuple[float, float]  # (joules per CPU second, watts per core) of the least plausible server
    high: tuple[float, float]
    cpu: str  # the entry of the table that was taken
    source: str  # the table, its date
    ratio: tuple[float, float] | None = None  # the plausible range of watts_per_core over joules_per_cpu_second ...
    servers: str = ""  # ... and of which servers it is


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag="header"):
    """First line: which meter, on which host, and why no better one.

    `kind` is that of the energy of node or device: `measured` only from a counter or a power meter. `domains` are summed to
    the node's energy, but for `gpu-N` (an accelerator each); on several hosts a domain is `host/domain`. `meter` is "none" where
    nothing could be read; `reason` then says why.
    """

    version: int
    host: str
    boot_id: str
    execution_id: str
    anchor_monotonic_ns: int
    anchor_wall_ns: int
    anchor_width_ns: int
    meter: str
    kind: MeterKind
    source: str  # e.g. "powercap: package-0, package-1, dram-0"
    detail: str = ""  # what is too long for `source`: a model's coefficients, and how they were found
    reason: str = ""  # why no better meter was taken; "" for the best
    domains: tuple[str, ...] = ()
    interval_ns: int = 200_000_000
    longest_gap_ns: int = 10_000_000_000  # between power samples: what lies in a longer one is not covered
    cpus: int = 1  # logical processors of the host
    usable_cpus: int = 0  # those of them that the run may use; 0: all
    supervisor: str = ""  # host:pid:start of the process that samples, tuneoff's own
    coefficients: Coefficients | None = None  # of the model meter
    idle_watts: dict[str, float] = {}  # by domain: the baseline of the matrix, before its first run
    idle_seconds: float = 0.0  # how long the baseline was read
    idle_problem: str = ""  # why the baseline is known to be wrong: what is split by it is an estimate


class PowerSample(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag="power"):
    """One domain's reading: a counter that never falls (`joules`), or the mean power since the sample before it (`watts`).

    The first sample of a domain in `watts` only says from when on it is known.
    """

    t: int
    domain: str
    joules: float | None = None
    watts: float | None = None


class NodeLine(msgspec.Struct, frozen=True, gc=False, tag="node"):
    """A line of files of earlier commits: what a whole node used, as a database had recorded it. Nothing rests on it any more."""


class ProcessUsage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a process had used when it was looked at. `children_cpu_ns`: of those children that it has waited for.

    Both only grow. The second has the grain of a clock tick (10 ms), the first is finer where the system tells.
    """

    pid: int
    started_ns: int  # as in the `process` event: kernel's start time, 10 ms grain
    parent: int
    cpu_ns: int
    children_cpu_ns: int
    rss_bytes: int
    pss_bytes: int | None = None  # looked at more rarely
    name: str | None = None  # the command's name, at the first sight


class UsageSample(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag="usage"):
    """The host and the run's process tree at a moment; a process that has used nothing since is left out.

    So is one that has used less than 5 ms, for up to a second: then it is looked at whatever it used.

    Among `processes`, though no part of the tree: the supervising process itself (`Header.supervisor`). It waits for the
    coordinator, so what the coordinator used after the last look at it arrives in its `children_cpu_ns`.
    """

    t: int
    busy_ns: int  # CPU time of the whole host since its start, all processors together, steal left out
    usable_busy_ns: int | None = None  # the same of the processors that the run may use; None: it may use all
    steal_ns: int = 0
    own_cpu_ns: int = 0  # of the sampling thread since its start
    processes: tuple[ProcessUsage, ...] = ()
    gone: tuple[tuple[int, int], ...] = ()  # (pid, started_ns) that were there before and are not now
    rss_bytes: int = 0  # sum over the tree (the supervising process left out), shared pages counted once per process
    gpu: tuple[tuple[str, int, float], ...] = ()  # (domain, pid, share of the device's time since the sample before, 0 to 1)
    gpu_memory: tuple[tuple[str, int, int], ...] = ()  # (domain, pid, bytes of the device's memory)


class Note(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="note"):
    """Something that went wrong while sampling; becomes the flag `power_problem`."""

    t: int
    text: str


Line = Header | PowerSample | NodeLine | UsageSample | Note


class SampleWriter:
    """Appends lines from several threads; a line that the disk does not take is counted, and noted once lines are taken again."""

    def __init__(self, folder: Path, header: Header) -> None:
        """Make the file with its header.

        Raises:
            OSError: it cannot be made.
        """
        self.path = folder / SAMPLES
        self.written_bytes = 0
        self._lock = threading.Lock()
        self._noted: set[str] = set()
        self._lost, self._problem = 0, ""
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._append(header)
        except OSError:  # nothing can follow a header that is not there
            self.close()
            self.path.unlink(missing_ok=True)
            raise

    def write(self, line: Line) -> None:
        """Append a line."""
        with self._lock:
            if self._descriptor < 0:
                return
            try:
                if self._lost:
                    text = f"{self._lost} samples could not be written: {self._problem}"
                    self._append(Note(t=clock.monotonic_ns(), text=text))
                    self._lost = 0
                self._append(line)
            except OSError as error:
                self._lost, self._problem = self._lost + 1, error.strerror or str(error)

    def note(self, text: str) -> None:
        """Append a note; each text once, and no more than `MOST_NOTES`."""
        text = " ".join(text.split())
        if text not in self._noted and len(self._noted) < MOST_NOTES:
            self._noted.add(text)
            self.write(Note(t=clock.monotonic_ns(), text=text))

    def close(self, within_seconds: float = 1.0) -> None:
        """End the file: nothing is written any more, whoever still tries. May be called twice."""
        if not self._lock.acquire(timeout=within_seconds):  # a write hangs: the descriptor stays its own
            return
        try:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
        finally:
            self._lock.release()

    def _append(self, line: Line) -> None:
        text = _encode(line) + b"\n"
        append_line(self._descriptor, text)
        self.written_bytes += len(text)


@dataclass(frozen=True, slots=True)
class EnergySeries:
    """Sample times (ns, strictly increasing) and the energy (J, never falling) used since the first of them."""

    times: Sequence[int]
    joules: Sequence[float]

    def energy(self, start_ns: int, end_ns: int) -> float:
        """Return the joules of an interval; what lies outside of the samples counts nothing (see `coverage`)."""
        return self.at(end_ns) - self.at(start_ns)

    def at(self, t: int) -> float:
        """Return the joules used up to a moment, linear between samples."""
        times, joules = self.times, self.joules
        if not times or t <= times[0]:
            return 0.0
        if t >= times[-1]:
            return joules[-1] - joules[0]
        index = bisect.bisect_right(times, t)
        before, after = times[index - 1], times[index]
        return joules[index - 1] - joules[0] + (joules[index] - joules[index - 1]) * (t - before) / (after - before)

    def cuts(self, start_ns: int, end_ns: int) -> Sequence[int]:
        """Return the sample times strictly inside an interval: between two cuts the power is constant."""
        return self.times[bisect.bisect_right(self.times, start_ns) : bisect.bisect_left(self.times, end_ns)]

    def reaching(self, start_ns: int, end_ns: int) -> EnergySeries:
        """Return the series from `start_ns` to `end_ns` at the least: outside of its samples, the power of the nearest second.

        The same series where it reaches that far already, and where it has no two samples.
        """
        times, joules = self.times, self.joules
        if len(times) < 2 or (times[0] <= start_ns and times[-1] >= end_ns):
            return self
        points = [(t, energy - joules[0]) for t, energy in zip(times, joules, strict=True)]
        if times[-1] < end_ns:
            before = times[max(0, bisect.bisect_right(times, times[-1] - NEAREST_NS, hi=len(times) - 1) - 1)]
            watts = self.energy(before, times[-1]) / (times[-1] - before)
            points.append((end_ns, points[-1][1] + watts * (end_ns - times[-1])))
        if times[0] > start_ns:
            after = times[min(len(times) - 1, bisect.bisect_left(times, times[0] + NEAREST_NS))]
            missing = self.energy(times[0], after) / (after - times[0]) * (times[0] - start_ns)
            points = [(start_ns, 0.0), *((t, energy + missing) for t, energy in points)]
        return EnergySeries([t for t, _ in points], [energy for _, energy in points])

    def coverage(self, start_ns: int, end_ns: int, longest_gap_ns: int) -> float:
        """Return the share of an interval, in [0, 1], that lies between samples at most `longest_gap_ns` apart."""
        if end_ns <= start_ns:
            return 0.0
        first = max(0, bisect.bisect_right(self.times, start_ns) - 1)
        covered = 0
        for index in range(first, len(self.times) - 1):
            before, after = self.times[index], self.times[index + 1]
            if before >= end_ns:
                break
            if after - before <= longest_gap_ns:
                covered += max(0, min(after, end_ns) - max(before, start_ns))
        return covered / (end_ns - start_ns)
