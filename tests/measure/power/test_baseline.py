"""The idle power of a host, read before the first run."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from measure.power.meters import Counter, Database, Hanging, Model, Replayed, plan_of
from tuneoff.base import clock
from tuneoff.measure.power import metering
from tuneoff.measure.power.metering import NO_POWER, PowerPlan, baseline_seconds, with_baseline
from tuneoff.measure.power.reading import mean_watts
from tuneoff.meter import MeterError
from tuneoff.record.samples.schema import PowerSample


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "IDLE_LIMIT", 1.1)


def taken(power: PowerPlan, seconds: float = 0.1) -> PowerPlan:
    return with_baseline(power, threading.Event(), seconds)


def test_the_idle_power_of_each_domain_is_read() -> None:
    power = taken(plan_of(Counter(watts=30.0, domains=("package-0", "dram-0"))))
    assert power.baseline.idle_watts == {"package-0": pytest.approx(30.0), "dram-0": pytest.approx(30.0)}
    assert 0.1 <= power.baseline.seconds < 10
    assert power.problems == ()


class Program(Counter):
    """Keeps what it measured while nobody read: 90 W up to a moment ago; then 30 W, once in so many seconds."""

    def __init__(self, every_seconds: float) -> None:
        super().__init__(domains=("node",))
        self._every_ns = round(every_seconds * 1e9)
        self._last_ns = clock.monotonic_ns()
        self._kept = [self._sample(self._last_ns - second * 1_000_000_000, 90.0) for second in range(5, -1, -1)]

    def read(self) -> list[PowerSample]:
        found, self._kept = self._kept, []
        while self._last_ns + self._every_ns <= clock.monotonic_ns():
            self._last_ns += self._every_ns
            found.append(self._sample(self._last_ns, 30.0))
        return found

    @staticmethod
    def _sample(t: int, watts: float) -> PowerSample:
        return PowerSample(t=t, domain="node", watts=watts)


def test_what_a_meter_measured_before_is_not_the_idle_power() -> None:
    meter = Program(every_seconds=0.02)
    assert taken(plan_of(meter), 0.2).baseline.idle_watts["node"] == pytest.approx(30.0, abs=3.0)
    everything = [*Program(0.02).read(), PowerSample(t=clock.monotonic_ns(), domain="node", watts=30.0)]
    assert mean_watts(everything)["node"] > 80, "the control: with what was before, it would be too high"


@pytest.mark.slow
def test_a_meter_that_prints_rarely_is_waited_for_and_one_that_has_stopped_is_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rare = Program(every_seconds=0.5)
    assert taken(plan_of(rare), 0.01).baseline.idle_watts == {"node": pytest.approx(30.0, abs=3.0)}
    silent = Program(every_seconds=0.5)
    silent.read()
    assert taken(plan_of(silent), 0.01).baseline.idle_watts == {"node": pytest.approx(30.0, abs=3.0)}
    stopped = Program(every_seconds=3600.0)
    stopped.description = replace(stopped.description, longest_gap_seconds=0.3)
    baseline = taken(plan_of(stopped), 0.01).baseline
    assert (baseline.idle_watts, baseline.broken) == ({}, "while the idle power was read: it gave no power of node within 0 s")


def test_a_slot_s_own_energy_has_no_idle_power() -> None:
    assert taken(plan_of(Counter(domains=("slot-0",)))).baseline.idle_watts == {}


def test_a_meter_that_fails_meanwhile_is_noted_for_every_run() -> None:
    power = taken(plan_of(Counter(failures=[MeterError("no package-0")])))
    assert power.problems == ("while the idle power was read: no package-0",)
    assert (power.baseline.broken, taken(plan_of(Counter())).baseline.broken) == (power.problems[0], "")


def test_a_host_that_is_not_idle_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "IDLE_LIMIT", -1.0)
    power = taken(plan_of(Counter()))
    (problem,) = power.problems
    assert problem.startswith("the idle power was read while ")
    assert problem == f"{power.baseline.busy}: it is too high, and what is attributed to trials too low"
    assert power.baseline.broken == ""


def test_a_meter_that_hangs_delays_the_matrix_by_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "STOP_SECONDS", 0.01)
    meter = Hanging()
    power = taken(plan_of(meter), 0.01)
    assert power.baseline.idle_watts == {}
    assert "did not answer in time" in power.problems[0]
    assert "did not answer in time" in power.baseline.broken
    power.close()
    assert meter.closed == 0  # to close it might hang too
    meter.released.set()


def test_an_interruption_ends_the_reading() -> None:
    interrupt = threading.Event()
    interrupt.set()
    baseline = with_baseline(plan_of(Counter()), interrupt, 3600.0).baseline
    assert (baseline.seconds < 60, baseline.broken) == (True, "")


def test_nothing_is_read_of_a_model_or_without_a_meter() -> None:
    model = Model()
    power = plan_of(model)
    assert taken(power, 3600.0) is power
    assert model.readings == 0
    assert taken(NO_POWER, 3600.0) is NO_POWER
    assert baseline_seconds(power) == baseline_seconds(NO_POWER) == baseline_seconds(plan_of(Replayed())) == 0


def test_a_database_is_asked_for_a_time_that_has_some_of_its_samples() -> None:
    power = plan_of(Database())
    assert (baseline_seconds(power), baseline_seconds(plan_of(Counter()))) == (10.0, 3.0)
    assert taken(power).baseline.idle_watts == {"package-0": pytest.approx(40.0)}


def test_a_database_that_knows_nothing_of_that_time_is_not_to_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Database()
    meter.problem = "the server does not answer"
    assert taken(plan_of(meter)).baseline.broken == "while the idle power was read: the server does not answer"


def test_an_interruption_is_not_held_up_by_a_database() -> None:
    meter, interrupt = Database(), threading.Event()
    meter.released.clear()
    interrupt.set()
    assert with_baseline(plan_of(meter), interrupt).baseline.idle_watts == {}
    meter.released.set()


def test_a_replayed_file_says_what_its_host_drew() -> None:
    assert taken(plan_of(Replayed()), 3600.0).baseline.idle_watts == {"package-0": 12.5}
