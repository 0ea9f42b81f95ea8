"""The idle baseline: what the host draws while nothing of ours runs, read once per matrix, before its first run."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

from tuneoff import clock
from tuneoff.power.meter import CollectingMeter, KnownBaseline
from tuneoff.power.plan import Baseline, PowerPlan
from tuneoff.power.procfs import HostClock
from tuneoff.power.reading import MeterReader, mean_watts
from tuneoff.samples.schema import PowerSample

SECONDS = 3.0
STOP_SECONDS = 1.0
IDLE_LIMIT = 0.05  # of all processors' time; with more of it in use the host was not idle


def with_baseline(power: PowerPlan, interrupt: threading.Event, seconds: float = SECONDS) -> PowerPlan:
    """Return the plan with the idle power of its meter's domains; takes `seconds` where there is something to read.

    A model has no domains, a database is asked later, a replayed file has its own or none: nothing is read then.
    """
    chosen = power.chosen
    if chosen is not None and isinstance(chosen.meter, KnownBaseline):
        return replace(power, baseline=Baseline(idle_watts=dict(chosen.meter.idle_watts)))
    if chosen is None or not chosen.description.domains or isinstance(chosen.meter, CollectingMeter):
        return power
    samples: list[PowerSample] = []
    problems: list[str] = []
    reader = MeterReader(
        chosen.name,
        chosen.meter,
        power.locks[0],
        interval_seconds=power.interval_seconds,
        take=samples.extend,
        note=lambda text: problems.append(f"while the idle power was read: {text}"),
    )
    host = _BusyShare()
    started_ns = clock.monotonic_ns()
    reader.start()
    interrupt.wait(seconds)
    reader.ask_to_stop()
    reader.wait(STOP_SECONDS)
    seconds = (clock.monotonic_ns() - started_ns) / clock.NANOSECONDS
    share = host.end()
    if share is not None and share > IDLE_LIMIT:
        text = f"the idle power was read while {100 * share:.0f} % of the processors' time was in use: it is too high, and what "
        problems.append(f"{text}is attributed to trials too low")
    idle = {domain: watts for domain, watts in mean_watts(list(samples)).items() if not domain.startswith("slot-")}
    return replace(power, baseline=Baseline(idle_watts=idle, seconds=seconds if idle else 0.0, problems=tuple(problems)))


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
        return busy_ns / (elapsed_ns * (os.cpu_count() or 1))
