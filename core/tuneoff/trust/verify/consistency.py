"""Do the clocks of an execution agree, does every event lie in its process and run, and do parts sum to their wholes?"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.layout import EVENTS, SAMPLES
from tuneoff.measure.attribution.account import EnergyAccount, job_pieces
from tuneoff.record.events.reader import Alignment, EventLog, Statistics, read_file
from tuneoff.record.events.schema import Event, Process, RunStopped
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import Header
from tuneoff.trust.verify.findings import Fault

SLEW_PER_MILLION = 500  # as fast as the kernel lets a time service turn the wall clock, in ns per ms
SMALL_NS = 20_000_000  # what a time service may put right at once
TICK_NS = 10_000_000  # grain of a process's start
HEADER_NS = 10 * NANOSECONDS  # the first line follows its anchor at once; a machine may stall
GRACE_NS = 30 * NANOSECONDS  # what a run's processes may outlive its un-deploy, until they are ended
PARTITION = ("deploy", "setup", "trial", "result_collection", "test", "metric_collection", "undeploy", "unassigned")
SLOT_PARTS = ("busy", "overhead", "idle")
RELATIVE = 1e-6  # of the whole: sums of many decimal numbers
ABSOLUTE = 1e-6  # in the unit of the whole

Metrics = Mapping[str, MetricValue]


@dataclass(slots=True)
class Life:
    """A process's file: its header, and the least and greatest time in it."""

    file: str
    process: Process
    first: int
    last: int


class WatchedLog(EventLog):
    """An event log that notes, while it is read, when each process lived, and why its run was stopped."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lives: list[Life] = []
        self.stops: list[RunStopped] = []

    def __iter__(self) -> Iterator[tuple[Process, Event]]:
        self.statistics = Statistics()
        self.lives, self.stops = [], []
        for path in self.paths():
            life: Life | None = None
            for process, event in read_file(path, self.statistics):
                if life is None:
                    life = Life(f"{EVENTS}/{path.name}", process, event.t, event.t)
                    self.lives.append(life)
                elif event.t > life.last:
                    life.last = event.t
                elif event.t < life.first:
                    life.first = event.t
                if type(event) is RunStopped:
                    self.stops.append(event)
                yield process, event


def clock_faults(lives: Sequence[Life], record: RunRecord, samples: Samples | None) -> Iterator[Fault]:
    """Yield one fault per process whose clock disagrees with the others of its boot, or whose events lie where they cannot.

    `samples`: on the run's clock.

    All processes of one boot read the same two clocks, so wall minus monotonic must be the same in all of them, up to what
    a time service may have turned the wall clock meanwhile: 500 ns per ms between the two readings, and 20 ms at once.
    """
    boots: dict[str, list[tuple[str, Process | Header]]] = defaultdict(list)
    for life in lives:
        boots[_boot(life.process)].append((life.file, life.process))
    if samples is not None:
        boots[_boot(samples.header)].append((SAMPLES, samples.header))
    for anchors in boots.values():
        middle = statistics.median_low([_offset_ns(anchor) for _, anchor in anchors])
        other, reference = next((file, anchor) for file, anchor in anchors if _offset_ns(anchor) == middle)
        for file, anchor in anchors:
            apart = abs(_offset_ns(anchor) - middle)
            between = abs(anchor.anchor_monotonic_ns - reference.anchor_monotonic_ns)
            widths = (anchor.anchor_width_ns + reference.anchor_width_ns) // 2
            allowed = SMALL_NS + widths + between * SLEW_PER_MILLION // 1_000_000
            if apart > allowed:
                text = (
                    f"its wall clock minus its monotonic clock is {apart / 1e9:.3f} s off that of {other}, of the same "
                    f"boot, where {allowed / 1e9:.3f} s can be at most: its clock was shifted, or the wall clock was set"
                )
                yield Fault(file, text)

    # No event is before its process began.
    slept: dict[str, bool] = {}  # older than `slept_ns`: its processes' starts are on another clock
    for life in lives:
        boot = _boot(life.process)
        slept[boot] = slept.get(boot, True) and life.process.began_ns > life.process.t
    for life in lives:
        process = life.process
        late = process.t - process.anchor_monotonic_ns
        if late < -process.anchor_width_ns or late > HEADER_NS:
            text = (
                f"its first line is {late / 1e9:.3f} s after its clock's anchor, where 0 to {HEADER_NS // NANOSECONDS} s can be"
            )
            yield Fault(life.file, text)
        early = process.began_ns - life.first
        if early > TICK_NS and not slept[_boot(process)]:
            yield Fault(life.file, f"it has an event {early / 1e9:.3f} s before its process began")

    # Events lie in the run: between the first line of supervisor or coordinator and their last event, un-deploy at the earliest.
    assert record.clock is not None
    undeploy = record.step("undeploy")
    start_ns = record.clock.start_monotonic_ns
    undeployed_ns = start_ns + undeploy.ended_ns if undeploy is not None and undeploy.ended_ns is not None else None
    alignment = Alignment(life.process for life in lives)
    keepers = [life for life in lives if life.process.role in ("supervisor", "coordinator")]
    begin = min((life.process.t for life in keepers), default=0)
    end = max([undeployed_ns, *(life.last for life in keepers)]) if undeployed_ns is not None else None
    for life in lives if keepers else ():
        offset = alignment.offset_ns(life.process)
        slack = TICK_NS + (record.clock_uncertainty_ns if alignment.is_foreign(life.process) else 0)
        yield from _outside(life.file, "an event", begin - life.first - offset, slack, life.last + offset, end, GRACE_NS + slack)

    # So do samples.
    if samples is None or not lives:
        return
    times = [sample.t for sample in samples.usage]
    times += [t for series in samples.power.values() for t in (*series.times[:1], *series.times[-1:])]
    if times:
        early = min(life.process.t for life in lives) - start_ns - min(times)
        end = max(undeployed_ns, *(life.last for life in lives)) if undeployed_ns is not None else None
        yield from _outside(SAMPLES, "a sample", early, GRACE_NS, start_ns + max(times), end, GRACE_NS)


def _outside(file: str, what: str, early: int, before: int, last: int, end: int | None, after: int) -> Iterator[Fault]:
    """Yield a fault for what is `early` before a run by more than `before`, or at `last` after its end by more than `after`."""
    if early > before:
        yield Fault(file, f"it has {what} {early / 1e9:.3f} s before the run")
    if end is not None and last - end > after:
        yield Fault(file, f"it has {what} {(last - end) / 1e9:.3f} s after the run")


def _boot(anchor: Process | Header) -> str:
    return anchor.host if anchor.boot_id == "unknown" else anchor.boot_id


def _offset_ns(anchor: Process | Header) -> int:
    return anchor.anchor_wall_ns - anchor.anchor_monotonic_ns


def wrong_sums(metrics: Metrics, account: EnergyAccount) -> Iterator[Fault]:
    """Yield the metrics of a run that are not the sum of their parts; where a part is null nothing can be told."""
    yield from _whole(metrics, "time.jct", [f"time.{name}" for name in PARTITION])
    for whole, test in (("time.jct", "time.test"), ("energy.job", "energy.step.test"), ("carbon.job", "carbon.step.test")):
        yield from _whole(metrics, whole, [f"{whole}_without_test", test])
    yield from _whole(metrics, "slots.slot_time", [f"slots.{name}" for name in SLOT_PARTS])
    for name in SLOT_PARTS:
        slots = [metric for metric in metrics if metric.startswith(f"slots.{name}[")]
        if slots:
            yield from _whole(metrics, f"slots.{name}", slots)

    # The energy of the job, of idling and of the node: the pieces of the account are summed anew.
    if account.reason is not None:
        return
    pieces = {"job": job_pieces(account) if account.job_reason is None else None, "idle": account.parts.get("idle")}
    for name, part in {**pieces, "node": account.node}.items():
        value = _value(metrics, f"energy.{name}")
        if part is not None and value is not None:
            yield from _unequal(f"energy.{name}", value, math.fsum(piece.joules for piece in part), "its pieces sum to")


def _whole(metrics: Metrics, whole: str, parts: Iterable[str]) -> Iterator[Fault]:
    total = _value(metrics, whole)
    values = [_value(metrics, part) for part in parts]
    numbers = [value for value in values if value is not None]
    if total is not None and len(numbers) == len(values):
        yield from _unequal(whole, total, math.fsum(numbers), "its parts sum to")


def _unequal(name: str, whole: float, total: float, how: str) -> Iterator[Fault]:
    if not math.isclose(whole, total, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
        yield Fault(name, f"it is {whole:.9g}, but {how} {total:.9g}")


def _value(metrics: Metrics, name: str) -> float | None:
    metric = metrics.get(name)
    return metric.value if metric is not None else None
