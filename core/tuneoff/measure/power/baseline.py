"""The idle baseline: what the host draws while nothing of ours runs, read once per matrix, before its first run."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tuneoff.base import clock
from tuneoff.measure.power.collecting import collected
from tuneoff.measure.power.metering import Baseline, PowerPlan
from tuneoff.measure.power.procfs import HostClock
from tuneoff.measure.power.reading import MeterReader, mean_watts
from tuneoff.measure.power.select_meter import Chosen
from tuneoff.record.samples.schema import PowerSample

SECONDS = 3.0
STOP_SECONDS = 1.0
POLL_SECONDS = 0.1
COLLECT_SECONDS = 60.0  # for a database to answer
WHILE = "while the idle power was read: "
IDLE_LIMIT = 0.05  # of all processors' time; with more of it in use the host was not idle


def baseline_seconds(power: PowerPlan) -> float:
    """Return for how long the idle power is read; 0 where nothing is: a model has no domains, a replayed file its own or none.

    A database is asked for a time that has two of its samples for certain.
    """
    chosen = power.chosen
    if chosen is None or not chosen.description.domains or chosen.meter.idle_watts is not None:
        return 0.0
    return chosen.description.longest_gap_seconds if chosen.meter.collects else SECONDS


def with_baseline(power: PowerPlan, interrupt: threading.Event, seconds: float | None = None) -> PowerPlan:
    """Return the plan with the idle power of its meter's domains; takes `baseline_seconds`, unless interrupted."""
    chosen = power.chosen
    if chosen is not None and chosen.meter.idle_watts is not None:
        return replace(power, baseline=Baseline(idle_watts=dict(chosen.meter.idle_watts)))
    if chosen is None or not baseline_seconds(power):
        return power
    problems: list[str] = []
    host, started_ns = _BusyShare(), clock.monotonic_ns()
    samples = _samples(power, interrupt, baseline_seconds(power) if seconds is None else seconds, problems)
    elapsed, share = (clock.monotonic_ns() - started_ns) / clock.NANOSECONDS, host.end()
    busy = ""
    if share is not None and share > IDLE_LIMIT and not interrupt.is_set():  # of an instant nothing can be told
        busy = f"the idle power was read while {100 * share:.0f} % of the processors' time was in use"
    idle = {domain: watts for domain, watts in mean_watts(samples).items() if not _is_slot(domain)}
    broken = "" if interrupt.is_set() else _broken(chosen, idle, elapsed, problems)
    baseline = Baseline(
        idle_watts=idle,
        seconds=elapsed if idle else 0.0,
        busy=busy,
        broken=f"{WHILE}{broken}" if broken else "",
        problems=tuple(WHILE + problem for problem in problems),
    )
    return replace(power, baseline=baseline)


def _broken(chosen: Chosen, idle: Mapping[str, float], seconds: float, problems: Sequence[str]) -> str:
    """Return why a meter is not to be used: something went wrong already, or it does not tell the power of all it reads.

    A database may be short of single domains of other nodes: it is refused only where it has none.
    """
    lacking = [domain for domain in chosen.description.domains if not _is_slot(domain) and domain not in idle]
    if chosen.meter.collects:
        return (problems[0] if problems else "it has no samples") if lacking and not idle else ""
    if problems or not lacking:
        return problems[0] if problems else ""
    return f"it gave no power of {', '.join(lacking)} within {seconds:.0f} s"


def _is_slot(domain: str) -> bool:
    return domain.rpartition("/")[2].startswith("slot-")


def _samples(power: PowerPlan, interrupt: threading.Event, seconds: float, problems: list[str]) -> list[PowerSample]:
    chosen = power.chosen
    assert chosen is not None
    meter, name, lock = chosen.meter, chosen.name, power.locks[0]
    if meter.collects:
        start = clock.anchor()
        interrupt.wait(seconds)
        within = 0.0 if interrupt.is_set() else COLLECT_SECONDS
        return list(collected(meter, name, lock, start, within_seconds=within, note=problems.append))
    samples: list[PowerSample] = []
    interval, started_ns = power.interval_seconds, clock.monotonic_ns()
    reader = MeterReader(name, meter, lock, interval_seconds=interval, take=samples.extend, note=problems.append)
    reader.start()
    interrupt.wait(seconds)
    latest = started_ns + chosen.description.longest_gap_seconds * clock.NANOSECONDS
    while reader.has_answered and not _tells(chosen, samples, started_ns) and clock.monotonic_ns() < latest and not problems:
        if interrupt.wait(POLL_SECONDS):  # of a meter that prints every few seconds, until it has
            break
    reader.ask_to_stop()
    reader.wait(STOP_SECONDS)
    return _since(list(samples), started_ns)


def _tells(chosen: Chosen, samples: Sequence[PowerSample], started_ns: int) -> bool:
    """Tell whether the samples have the power of each domain."""
    return mean_watts(_since(list(samples), started_ns)).keys() >= set(chosen.description.domains)


def _since(samples: list[PowerSample], started_ns: int) -> list[PowerSample]:
    """Leave out what a meter kept from before, when tuneoff was at work; not the last of it: from there the next one counts."""
    before: dict[str, PowerSample] = {}
    for sample in samples:
        if sample.t < started_ns:
            before[sample.domain] = sample
    return [*before.values(), *(sample for sample in samples if sample.t >= started_ns)]


class _BusyShare:
    """How much of the processors' time is in use, from here to `end`."""

    def __init__(self) -> None:
        self._host: HostClock | None = None
        try:
            self._host = HostClock()
            self._busy_ns, self._started_ns = self._host.read().busy_ns, clock.monotonic_ns()
        except OSError:  # no /proc
            return

    def end(self) -> float | None:
        """Return the share, in [0, 1]; None where it cannot be told."""
        if self._host is None:
            return None
        busy_ns, elapsed_ns = self._host.read().busy_ns - self._busy_ns, clock.monotonic_ns() - self._started_ns
        self._host.close()
        return min(1.0, busy_ns / (elapsed_ns * (os.cpu_count() or 1)))  # ticks may be told late
