"""The meter codecarbon: its counter, without network and files; on a fake, and on the real package where it is."""

from __future__ import annotations

import importlib.util
import socket
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest

from tuneoff.measure.power.select_meter import choose
from tuneoff.meter import MeterError
from tuneoff_meters.codecarbon import CodecarbonMeter


class FakeTracker:
    """Takes what it is made with; tests call its outputs."""

    made: dict[str, Any]
    stops = 0

    def __init__(self, **options: Any) -> None:
        type(self).made = options
        type(self).stops = 0

    def start(self) -> None: ...

    def stop(self) -> None:
        type(self).stops += 1


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> type[FakeTracker]:
    module = types.ModuleType("codecarbon")
    module.OfflineEmissionsTracker = FakeTracker  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "codecarbon", module)
    return FakeTracker


def _tell(tracker: type[FakeTracker], kilowatt_hours: float) -> None:
    (output,) = tracker.made["output_handlers"]
    output.live_out(types.SimpleNamespace(energy_consumed=kilowatt_hours), None)


def test_its_energy_is_a_counter_in_joules(tracker: type[FakeTracker]) -> None:
    meter = CodecarbonMeter({"interval_seconds": 2})
    given = ("output_methods", "emissions_endpoint", "electricitymaps_api_token", "measure_power_secs")
    assert [tracker.made[name] for name in given] == [[], None, None, 2], "neither network nor files"
    assert (meter.description.kind, meter.description.domains) == ("estimated", ("codecarbon",))
    assert [sample.joules for sample in meter.read()] == [0]
    assert list(meter.read()) == []
    _tell(tracker, 1e-6)
    assert [sample.joules for sample in meter.read()] == [pytest.approx(3.6)]
    _tell(tracker, 0.5e-6)  # a counter never falls
    assert [sample.joules for sample in meter.read()] == [pytest.approx(3.6)]
    meter.close()
    meter.close()
    assert tracker.stops == 1


def test_without_its_package_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "codecarbon", None)
    with pytest.raises(MeterError, match=r"run: pip install 'codecarbon<4,>=3.3'$"):
        choose("codecarbon")


def test_what_it_raises_is_one_line(tracker: type[FakeTracker], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: FakeTracker) -> None:
        raise ValueError("no\nhardware")

    monkeypatch.setattr(FakeTracker, "start", fail)
    with pytest.raises(MeterError, match="codecarbon cannot be used: ValueError: no hardware"):
        CodecarbonMeter({})


@pytest.mark.slow
def test_the_real_package_counts_without_network_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("codecarbon") is None:
        pytest.skip("codecarbon is not installed: pip install 'codecarbon<4,>=3.3'")

    reached: list[Any] = []

    def refuse(_: socket.socket, address: Any) -> None:
        reached.append(address)
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    meter = CodecarbonMeter({"interval_seconds": 0.2})
    joules: list[float] = []
    deadline = time.monotonic() + 20
    while len(joules) < 4 and time.monotonic() < deadline:
        joules.extend(sample.joules or 0 for sample in meter.read())
    meter.close()
    assert joules == sorted(joules)
    assert joules[-1] > 0
    assert (reached, list(tmp_path.iterdir())) == ([], [])
