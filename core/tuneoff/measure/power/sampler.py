"""The one sampler of a host: while a run runs, it writes what its meter reads and what its processes use to `power.jsonl`."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tuneoff.base import clock
from tuneoff.measure.power.metering import NO_POWER, PowerPlan
from tuneoff.measure.power.procfs import HostClock
from tuneoff.measure.power.reading import MeterReader, Pace, collected
from tuneoff.measure.power.tree import ProcessTree
from tuneoff.meter import MeterDescription
from tuneoff.record.samples.schema import LATE, SCHEMA_VERSION, Header, PowerSample, SampleWriter, UsageSample

log = logging.getLogger(__name__)

MOST_SHARE = 0.007  # of one core, for looking at processes
STOP_SECONDS = 1.0
COLLECT_SECONDS = 60.0  # a database waits for one more scrape, and has time limits of its own


class Sampler:
    """Samples one run from `start` to `stop`; nothing that happens to it ends or delays the run. Also a context manager."""

    def __init__(self, folder: Path, execution_id: str, power: PowerPlan = NO_POWER) -> None:
        self._folder, self._execution_id, self._power = folder, execution_id, power
        self._anchor, self._slept_ns = clock.anchor(), clock.slept_ns()
        usable = frozenset(os.sched_getaffinity(0))  # the processors that this command and its runs may use
        self._usable = usable if len(usable) < (os.cpu_count() or 1) else frozenset()  # empty: all
        meter = power.meter
        is_read = meter is not None and (meter.description.domains or meter.description.coefficients is None)
        self._meter = meter if is_read else None  # a model reads nothing
        self._ended = threading.Event()
        self._writer: SampleWriter | None = None
        self._thread: threading.Thread | None = None
        self._reader: MeterReader | None = None
        self._seen: set[str] = set()  # domains of the meter that have a sample

    def start(self) -> None:
        """Write the header and begin; called before the first process of the run is started."""
        self._anchor, self._slept_ns = clock.anchor(), clock.slept_ns()
        tree = ProcessTree(self._execution_id)
        try:
            self._writer = writer = SampleWriter(self._folder, self._header(tree))
        except OSError as error:
            log.warning("%s: nothing is sampled in this run: %s", self._folder, error.strerror or error)
            return
        for problem in self._power.problems:
            writer.note(problem)
        if self._meter is not None and not self._meter.collects:
            self._reader = MeterReader(
                self._power.name,
                self._meter,
                self._power.lock,
                interval_seconds=self._power.interval_seconds,
                take=lambda samples: self._write(writer, samples),
                note=writer.note,
                written=lambda: writer.written_bytes,
            )
            self._reader.start()
        self._thread = threading.Thread(target=self._sample, args=(tree, writer), name="sampler", daemon=True)
        self._thread.start()

    def stop(self, collect_seconds: float = COLLECT_SECONDS) -> None:
        """Take a last sample and end, within 1 s; a meter that is asked after the run gets up to `collect_seconds`.

        May be called twice.
        """
        writer, self._writer = self._writer, None
        if writer is None:
            return
        deadline = time.monotonic() + STOP_SECONDS
        self._ended.set()
        if self._reader is not None:
            self._reader.ask_to_stop()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        if self._reader is not None:
            self._reader.wait(deadline - time.monotonic())
        if self._meter is not None:
            name = self._power.name
            if self._meter.collects:
                lock, note = self._power.lock, writer.note
                samples = collected(self._meter, name, lock, self._anchor, within_seconds=collect_seconds, note=note)
                self._write(writer, samples)
            silent = [domain for domain in self._meter.description.domains if domain not in self._seen]
            if silent:  # promised and never read: it broke in a run before, and said so there
                writer.note(f"the power meter {name} gave no sample of {', '.join(silent)} in this run")
        slept_ns = clock.slept_ns() - self._slept_ns
        if slept_ns > clock.SLEPT_NS:
            slept = f"the machine was suspended for {slept_ns / clock.NANOSECONDS:.1f} s in this run"
            writer.note(f"{slept}: its times leave that out, and its energy is not comparable")
        writer.close()

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _header(self, tree: ProcessTree) -> Header:
        power, host = self._power, os.uname().nodename
        about = power.meter.description if power.meter is not None else MeterDescription(kind="estimated", source="")
        # a meter is not read more often than was asked for, and at times late
        longest_gap_seconds = max(about.longest_gap_seconds, LATE * power.interval_seconds)
        started_ns = tree.supervisor.stat.started_ns if tree.supervisor is not None else 0
        return Header(
            version=SCHEMA_VERSION,
            host=host,
            boot_id=clock.boot_id(),
            execution_id=self._execution_id,
            anchor_monotonic_ns=self._anchor.monotonic_ns,
            anchor_wall_ns=self._anchor.wall_ns,
            anchor_width_ns=self._anchor.width_ns,
            meter=power.name,
            kind=about.kind,
            source=about.source,
            detail=about.detail,
            reason=power.reason,
            domains=about.domains,
            interval_ns=round(power.interval_seconds * clock.NANOSECONDS),
            longest_gap_ns=round(longest_gap_seconds * clock.NANOSECONDS),
            cpus=os.cpu_count() or 1,
            usable_cpus=len(self._usable),
            supervisor=f"{host}:{os.getpid()}:{started_ns}",
            coefficients=about.coefficients,
            idle_watts=dict(power.baseline.idle_watts),
            idle_seconds=power.baseline.seconds,
            idle_problem=power.baseline.busy,
        )

    def _write(self, writer: SampleWriter, samples: Sequence[PowerSample]) -> None:
        for sample in samples:
            self._seen.add(sample.domain)
            writer.write(sample)

    def _sample(self, tree: ProcessTree, writer: SampleWriter) -> None:
        """Look at the host and the tree until the end, and once more then."""
        try:
            with contextlib.closing(HostClock(usable=self._usable)) as host:
                pace, due = Pace(self._power.interval_seconds, MOST_SHARE), time.monotonic()
                while not self._ended.is_set():
                    before = time.thread_time()
                    writer.write(self._look(tree, host))
                    pace.spent(time.thread_time() - before)
                    due = max(due + pace.interval(writer.written_bytes), time.monotonic())
                    self._ended.wait(due - time.monotonic())
                writer.write(self._look(tree, host))
        except OSError as error:
            writer.note(f"the use of processors and memory cannot be read any more: {error}")
        except Exception as error:  # a mistake here must show in the record, and not end the run
            log.exception("the sampler failed")
            writer.note(f"the sampler failed: {type(error).__name__}: {error}")

    def _look(self, tree: ProcessTree, host: HostClock) -> UsageSample:
        now = clock.monotonic_ns()
        times = host.read()
        seen = tree.look(now, times.forks)
        return UsageSample(
            t=now,
            busy_ns=times.busy_ns,
            usable_busy_ns=times.usable_busy_ns,
            steal_ns=times.steal_ns,
            own_cpu_ns=time.thread_time_ns() + (self._reader.cpu_ns if self._reader is not None else 0),
            processes=seen.processes,
            gone=seen.gone,
            rss_bytes=seen.rss_bytes,
            gpu=self._reader.shares if self._reader is not None else (),
            gpu_memory=self._reader.memory if self._reader is not None else (),
        )
