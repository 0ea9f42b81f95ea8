"""Meters that break before the first run: one given by name is refused, and for one that `auto` took the next best is taken."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from measure.power.meters import Counter, Hanging, Model
from tuneoff.errors import ExperimentError
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.measure.power import metering
from tuneoff.measure.power.metering import HostPower
from tuneoff.measure.power.select_meter import Chosen, JointMeter
from tuneoff.meter import MeterError, PowerMeter

Open = Callable[..., None]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "IDLE_LIMIT", 1.1)
    monkeypatch.setattr(metering, "SECONDS", 0.05)
    monkeypatch.setattr(metering, "STOP_SECONDS", 0.01)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Which meters were not to be taken, by each choice."""
    return []


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch, asked: list[dict[str, str]]) -> Open:
    """Return a function that says which meters are opened, one after the other."""

    def say(*meters: tuple[str, PowerMeter]) -> None:
        left = list(meters)

        def choose(wanted: str, options: object, broken: dict[str, str]) -> Chosen:
            asked.append(dict(broken))
            name, meter = left.pop(0)
            return Chosen(name=name, meter=meter, reason="; ".join(broken.values()))

        monkeypatch.setattr(metering, "choose", choose)

    return say


def failing(*domains: str) -> Counter:
    return Counter(domains=domains or ("package-0",), failures=[MeterError("package-0 vanished") for _ in range(100)])


def prepared(meter: str = "auto") -> tuple[HostPower, list[str]]:
    told: list[str] = []
    power = HostPower(PowerSettings(meter=meter, interval_seconds=0.02))
    power.prepare(threading.Event(), told.append)
    return power, told


def test_a_meter_that_works_is_kept_and_nothing_is_told(opens: Open) -> None:
    meter = Counter(watts=30.0)
    opens(("rapl", meter))
    power, told = prepared()
    assert (told, meter.closed) == ([], 0)
    assert power.plan.baseline.idle_watts == {"package-0": pytest.approx(30.0)}
    power.close()
    assert meter.closed == 1


def test_a_meter_by_name_that_breaks_is_refused(opens: Open) -> None:
    opens(("rapl", failing()))
    problem = r"^power\.meter 'rapl' cannot be used: while the idle power was read: package-0 vanished$"
    with pytest.raises(ExperimentError, match=problem):
        prepared("rapl")


def test_auto_takes_the_next_best_and_says_so(opens: Open, asked: list[dict[str, str]]) -> None:
    broken, model = failing(), Model()
    opens(("rapl", broken), ("model", model))
    power, told = prepared()
    why = "rapl broke while the idle power was read: package-0 vanished"
    assert told == [f"power: model (estimated: a table); no better one: {why}"]
    assert asked == [{}, {"rapl": why}]
    assert power.plan.problems == ()
    power.close()
    assert (broken.closed, model.closed) == (1, 1)


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"rapl": failing(), "nvml": Counter(domains=("gpu-0",))}, {"rapl"}),
        ({"rapl": Counter(), "nvml": failing("gpu-0")}, {"nvml"}),
        ({"nvml": failing("gpu-0"), "model": Model()}, {"nvml"}),
        ({"rapl": Counter(), "nvml": Hanging(domains=("gpu-0",))}, {"rapl", "nvml"}),
    ],
)
def test_of_several_meters_only_what_broke_is_left_out(
    opens: Open, asked: list[dict[str, str]], parts: dict[str, Any], fault: set[str]
) -> None:
    opens(("+".join(parts), JointMeter(parts)), ("model", Model()))
    prepared()
    assert set(asked[1]) == fault
    for part in parts.values():
        if isinstance(part, Hanging):
            part.released.set()


def test_a_host_that_was_not_idle_is_told_once(opens: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "IDLE_LIMIT", -1.0)
    opens(("rapl", Counter()))
    _, (line,) = prepared()
    assert line.startswith("power: the idle power was read while ")


def test_an_interruption_refuses_nothing(opens: Open) -> None:
    opens(("rapl", failing()))
    interrupt = threading.Event()
    interrupt.set()
    told: list[str] = []
    HostPower(PowerSettings(meter="rapl")).prepare(interrupt, told.append)
    assert told == []
