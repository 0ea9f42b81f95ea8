"""A meter read in a thread of its own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from measure.power.meters import Counter, Hanging
from tuneoff.measure.power.reading import MeterReader, checked, mean_watts
from tuneoff.meter import MeterError, PowerMeter
from tuneoff.record.samples.schema import PowerSample
from waiting import until

SECOND = 1_000_000_000


class Reading:
    """A reader with what it gave."""

    def __init__(self, meter: PowerMeter, lock: threading.Lock | None = None) -> None:
        self.samples: list[PowerSample] = []
        self.notes: list[str] = []
        self.reader = MeterReader(
            "test",
            meter,
            lock or threading.Lock(),
            interval_seconds=0.01,
            take=self.samples.extend,
            note=self.notes.append,
        )
        self.reader.start()

    def stop(self, seconds: float = 10.0) -> bool:
        self.reader.ask_to_stop()
        return self.reader.wait(seconds)


@pytest.mark.parametrize(
    ("problem", "note"),
    [
        (MeterError("the counter vanished"), "the counter vanished"),
        (ValueError("not a number"), "the power meter test failed: ValueError: not a number"),
    ],
)
def test_a_meter_that_fails_once_is_noted_and_read_again(problem: Exception, note: str) -> None:
    meter = Counter(failures=[problem])
    reading = Reading(meter)
    until(lambda: meter.readings >= 1)
    assert reading.stop()  # its last reading comes at once
    assert reading.notes == [note]
    assert len(reading.samples) == meter.readings - 1 > 0


def test_a_meter_that_hangs_is_left_alone_and_not_read_by_the_next_run() -> None:
    meter, lock = Hanging(), threading.Lock()
    reading = Reading(meter, lock)
    assert meter.entered.wait(10)
    assert not reading.stop(0.01)
    assert reading.notes == ["the power meter test did not answer in time at the end of the run; it was left alone"]
    following = Reading(meter, lock)
    assert following.stop()
    assert following.notes == ["the power meter test has hung since an earlier run; nothing was read from it"]
    meter.released.set()
    assert reading.stop()
    assert not lock.locked()


def test_mean_power_is_that_of_a_counter_or_of_power_samples_weighted_by_time() -> None:
    samples = [
        PowerSample(t=0, domain="counter", joules=100.0),
        PowerSample(t=0, domain="samples", watts=999.0),  # only says from when on it is known
        PowerSample(t=1 * SECOND, domain="samples", watts=10.0),
        PowerSample(t=4 * SECOND, domain="samples", watts=20.0),
        PowerSample(t=4 * SECOND, domain="counter", joules=180.0),
        PowerSample(t=2 * SECOND, domain="counter", joules=500.0),  # out of order
        PowerSample(t=1 * SECOND, domain="once", joules=1.0),
    ]
    assert mean_watts(samples) == {"counter": 20.0, "samples": 17.5}


def test_a_meter_s_numbers_may_be_of_any_library() -> None:
    sample = PowerSample(t=np.int64(SECOND), domain="node", watts=np.float32(2.5))  # type: ignore[arg-type]
    (taken,) = checked([sample])
    assert (type(taken.t), type(taken.watts), taken.watts) == (int, float, 2.5)


@pytest.mark.parametrize(
    "sample",
    [
        {"t": 1, "domain": "node", "joules": 1.0},
        PowerSample(t=1.5, domain="node", joules=1.0),  # type: ignore[arg-type]
        PowerSample(t=1, domain="node", watts="60"),  # type: ignore[arg-type]
        PowerSample(t=1, domain="node", watts=(1, object())),  # type: ignore[arg-type]
        PowerSample(t=1, domain=None, watts=60.0),  # type: ignore[arg-type]
        PowerSample(t=1, domain="node", joules=True),
    ],
)
def test_samples_that_could_not_be_read_again_are_not_written_down(sample: PowerSample) -> None:
    meter = Counter()
    meter.read = lambda: [sample]  # type: ignore[method-assign]
    reading = Reading(meter)
    until(lambda: bool(reading.notes))
    assert reading.stop()
    assert reading.samples == []
    assert "but must give PowerSample(t=ns, domain=text" in reading.notes[0]
    assert "0x" not in reading.notes[0]
