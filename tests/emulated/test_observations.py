"""The metric lines that are kept for each trial."""

from __future__ import annotations

import pytest

from katib_emulation.collector import ZERO_TIME, Observation, Observations, moment


def line(time: str, value: str, name: str = "loss") -> Observation:
    return Observation(time, name, value)


def test_what_was_reported_is_read_by_time_not_by_order() -> None:
    observations = Observations()
    observations.report("t", [line("2026-01-01T00:00:02Z", "2"), line("2026-01-01T00:00:01Z", "1")])
    assert [observation.value for observation in observations.read("t")] == ["1", "2"]


def test_equal_times_keep_the_order_of_their_report() -> None:
    observations = Observations()
    observations.report("t", [line(ZERO_TIME, "b"), line(ZERO_TIME, "a")])
    observations.report("t", [line(ZERO_TIME, "c")])
    assert [observation.value for observation in observations.read("t")] == ["b", "a", "c"]


def test_times_of_other_zones_are_ordered_too() -> None:
    observations = Observations()
    times = ["2026-01-01T12:00:00.1234569+02:00", "2026-01-01T10:00:00.123457Z", "2026-01-01T10:00:00.1Z"]
    observations.report("t", [line(time, value) for time, value in zip(times, "bca", strict=True)])
    assert [observation.value for observation in observations.read("t")] == ["a", "b", "c"]


def test_trials_are_kept_apart_and_deleted_alone() -> None:
    observations = Observations()
    observations.report("a", [line(ZERO_TIME, "1")])
    observations.report("b", [line(ZERO_TIME, "2")])
    observations.delete("a")
    observations.delete("a")
    assert observations.read("a") == []
    assert [observation.value for observation in observations.read("b")] == ["2"]


@pytest.mark.parametrize(
    "text", ["2026-01-01", "2026-01-01 10:00:00Z", "2026-13-01T10:00:00Z", "2026-01-01T10:00:00", "now", "1.5"]
)
def test_only_rfc_3339_is_a_time(text: str) -> None:
    assert moment(text) is None
