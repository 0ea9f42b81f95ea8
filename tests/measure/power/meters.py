"""Meters that behave as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.base import clock
from tuneoff.measure.power.metering import PowerPlan
from tuneoff.meter import MeterDescription, MeterError, PowerMeter
from tuneoff.record.samples.schema import PowerSample


@dataclass
class Counter(PowerMeter):
    """Counts joules at `watts`, from whenever it was made. `failures` are raised first, one per reading."""

    watts: float = 50.0
    domains: tuple[str, ...] = ("package-0",)
    failures: list[Exception] = field(default_factory=list)
    readings: int = 0
    closed: int = 0

    def __post_init__(self) -> None:
        self._made_ns = clock.monotonic_ns()
        self.description = MeterDescription(kind="measured", source="a test's counter", domains=self.domains)

    def read(self) -> Sequence[PowerSample]:
        self.readings += 1
        if self.failures:
            raise self.failures.pop(0)
        now = clock.monotonic_ns()
        joules = self.watts * (now - self._made_ns) / 1e9
        return [PowerSample(t=now, domain=domain, joules=joules) for domain in self.domains]

    def close(self) -> None:
        self.closed += 1


class Hanging(Counter):
    """Hangs in every reading until `released`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.released, self.entered = threading.Event(), threading.Event()

    def read(self) -> Sequence[PowerSample]:
        self.entered.set()
        self.released.wait()
        return []


class Database(Counter):
    """Is asked once, after the run; `answers` are samples on the wall clock, made from the window."""

    problem: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.windows: list[tuple[int, int]] = []
        self.released = threading.Event()
        self.released.set()

    def read(self) -> Sequence[PowerSample]:
        raise AssertionError("a database is asked after the run alone")

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> Iterable[PowerSample]:
        self.released.wait()
        self.windows.append((start_wall_ns, end_wall_ns))
        if self.problem:
            raise MeterError(self.problem)
        yield PowerSample(t=start_wall_ns, domain="package-0", watts=40.0)
        yield PowerSample(t=end_wall_ns, domain="package-0", watts=40.0)


class Replayed(Database):
    """Knows its idle power."""

    idle_watts: Mapping[str, float] = {"package-0": 12.5}


def plan_of(meter: PowerMeter, *, interval_seconds: float = 0.02) -> PowerPlan:
    """Return the plan of a host where `meter` was chosen."""
    return PowerPlan(name="test", meter=meter, reason="", interval_seconds=interval_seconds)
