"""The meter of a matrix: planned, tried before the first run, and read on the idle host."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from measure.power.meters import Counter, Database, Hanging, Replayed, plan_of
from tuneoff.base import clock
from tuneoff.errors import ExperimentError
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.measure.power import metering, reading
from tuneoff.measure.power.metering import NO_POWER, HostPower, PowerPlan, baseline_seconds, open_power, with_baseline
from tuneoff.measure.power.reading import mean_watts
from tuneoff.meter import MeterError, OptionError, PowerMeter
from tuneoff.record.samples.schema import PowerSample


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MeterError("no RAPL: no such folder; use another"), r"^power\.meter 'rapl' cannot be used: no RAPL: .*; use another$"),
        (OptionError("meter rapl has no option 'roo'"), r"^power\.options: meter rapl has no option 'roo'$"),
    ],
)
def test_a_named_meter_that_cannot_be_used_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: MeterError, line: str
) -> None:
    def refuse(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(metering, "choose", refuse)
    with pytest.raises(ExperimentError, match=line):
        open_power(PowerSettings(meter="rapl"))
    power = open_power(PowerSettings(meter="none", interval_seconds=0.5))
    assert (power.meter, power.interval_seconds) == (None, 0.5)
    assert power.line() == "power: no meter (none was asked for)"


@pytest.mark.parametrize(
    ("meter", "options", "there"),
    [
        ("replay", {"path": "a.csv"}, {"path": "e/a.csv"}),
        ("auto", {"rapl": {"root": "x"}, "model": {"cpu": "a"}}, {"rapl": {"root": "e/x"}, "model": {"cpu": "a"}}),
        ("auto", {"rapl": 5}, {"rapl": 5}),
        ("command", {"command": "./meter.sh -x ./y"}, {"command": "e/meter.sh -x ./y"}),
        ("command", {"command": ["bin/meter", "y"]}, {"command": ["e/bin/meter", "y"]}),
        ("command", {"command": "ipmitool sensor"}, {"command": "ipmitool sensor"}),
        ("command", {"command": "'./half"}, {"command": "'./half"}),
    ],
)
def test_paths_of_options_begin_at_the_experiment_file_and_are_stored_as_written(
    meter: str, options: dict[str, Any], there: dict[str, Any]
) -> None:
    settings = PowerSettings(meter=meter, options=options, folder="e")
    assert settings.placed_options == there
    assert PowerSettings(**settings.to_json()).placed_options == options
    assert replace(settings, folder=".").placed_options == options


def test_options_are_shown_as_a_file_has_them() -> None:
    line = PowerSettings(meter="m", options={"command": ["./meter.sh", "-n 2"], "x": None}).line
    assert line == 'power: meter m with {"command":["./meter.sh","-n 2"],"x":null}, read every 0.2 s'
    assert PowerSettings(meter="none").line == "power: no meter, as asked for"


def test_a_meter_that_fails_when_it_is_closed_costs_no_finished_run(caplog: pytest.LogCaptureFixture) -> None:
    meter = Counter()

    def fail() -> None:
        raise RuntimeError("not\ninitialised")

    meter.close = fail  # type: ignore[method-assign]
    plan_of(meter).close()
    assert caplog.messages == ["the power meter test fails when it is closed: RuntimeError: not initialised; tell its author"]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "IDLE_LIMIT", 1.1)


def prepared(monkeypatch: pytest.MonkeyPatch, meter: PowerMeter, name: str = "auto") -> tuple[PowerPlan, list[str]]:
    monkeypatch.setattr(metering, "SECONDS", 0.05)
    monkeypatch.setattr(metering, "choose", lambda *_: ("rapl", meter, ""))
    lines: list[str] = []
    return HostPower(PowerSettings(meter=name, interval_seconds=0.02)).prepare(threading.Event(), lines.append), lines


def test_a_meter_that_breaks_is_refused_by_its_name_and_told_where_nobody_named_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Counter:
        return Counter(failures=[MeterError("package-0 vanished") for _ in range(100)])

    problem = "while the idle power was read: package-0 vanished"
    with pytest.raises(ExperimentError, match=rf"^power\.meter 'rapl' cannot be used: {problem}$"):
        prepared(monkeypatch, broken(), "rapl")
    power, lines = prepared(monkeypatch, broken())
    assert lines == [f"power: {problem}"]
    assert power.problems == (problem,)


def test_a_host_that_was_not_idle_is_told_once_and_noted_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "IDLE_LIMIT", -1.0)
    power, (line,) = prepared(monkeypatch, Counter())
    (problem,) = power.problems
    assert line == f"power: {problem}"
    assert problem.startswith("the idle power was read while ")
    assert problem == f"{power.baseline.busy}: it is too high, and what is attributed to trials too low"
    assert power.baseline.broken == ""


def taken(power: PowerPlan, seconds: float = 0.1) -> PowerPlan:
    return with_baseline(power, threading.Event(), seconds)


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


def test_a_meter_that_prints_rarely_is_waited_for_and_one_that_has_stopped_is_not_for_ever() -> None:
    assert taken(plan_of(Program(every_seconds=0.3)), 0.01).baseline.idle_watts == {"node": pytest.approx(30.0, abs=3.0)}
    stopped = Program(every_seconds=3600.0)
    stopped.description = replace(stopped.description, longest_gap_seconds=0.2)
    baseline = taken(plan_of(stopped), 0.01).baseline
    assert (baseline.idle_watts, baseline.broken) == ({}, "while the idle power was read: it gave no power of node within 0 s")


def test_a_meter_that_fails_once_is_noted_for_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "AFTER_A_PROBLEM_SECONDS", 0.0)
    power = taken(plan_of(Counter(failures=[MeterError("no package-0")])))
    assert power.problems == ("while the idle power was read: no package-0",)
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


def test_an_interruption_ends_the_reading_also_of_a_database() -> None:
    interrupt, database = threading.Event(), Database()
    interrupt.set()
    database.released.clear()
    for meter in (Counter(), database):
        baseline = with_baseline(plan_of(meter), interrupt, 3600.0).baseline
        assert (baseline.seconds < 60, baseline.broken) == (True, "")
    database.released.set()


def test_a_database_is_asked_for_a_time_that_has_some_of_its_samples_and_a_replayed_file_says_its_own() -> None:
    power = plan_of(Database())
    assert (baseline_seconds(power), baseline_seconds(plan_of(Counter())), baseline_seconds(NO_POWER)) == (10.0, 3.0, 0.0)
    assert taken(power).baseline.idle_watts == {"package-0": pytest.approx(40.0)}
    assert taken(plan_of(Replayed()), 3600.0).baseline.idle_watts == {"package-0": 12.5}
