"""The metric lines that are kept for each trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from katib_emulation.observations import ZERO_TIME, Observation, Observations, moment


def line(time: str, value: str, name: str = "loss") -> Observation:
    return Observation(time, name, value)


def test_what_was_reported_is_read_by_time_not_by_order(tmp_path: Path) -> None:
    observations = Observations(tmp_path)
    observations.report("t", [line("2026-01-01T00:00:02Z", "2"), line("2026-01-01T00:00:01Z", "1")])
    assert [observation.value for observation in observations.read("t")] == ["1", "2"]


def test_equal_times_keep_the_order_of_their_report(tmp_path: Path) -> None:
    observations = Observations(tmp_path)
    observations.report("t", [line(ZERO_TIME, "b"), line(ZERO_TIME, "a")])
    observations.report("t", [line(ZERO_TIME, "c")])
    assert [observation.value for observation in observations.read("t")] == ["b", "a", "c"]


def test_times_are_utc_and_cut_to_microseconds(tmp_path: Path) -> None:
    observations = Observations(tmp_path)
    times = ["2026-01-01T12:00:00.1234569+02:00", "2026-01-01T10:00:01.500Z", "2026-01-01T10:00:02Z"]
    observations.report("t", [line(time, "1") for time in times])
    written = [observation.time for observation in observations.read("t")]
    assert written == ["2026-01-01T10:00:00.123456Z", "2026-01-01T10:00:01.5Z", "2026-01-01T10:00:02Z"]


def test_trials_are_kept_apart_and_deleted_alone(tmp_path: Path) -> None:
    observations = Observations(tmp_path)
    observations.report("a", [line(ZERO_TIME, "1")])
    observations.report("b", [line(ZERO_TIME, "2")])
    observations.delete("a")
    observations.delete("a")
    assert observations.read("a") == []
    assert [observation.value for observation in observations.read("b")] == ["2"]


def test_a_report_that_cannot_be_written_says_so_and_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "observations").write_text("a file where the folder should be")
    with pytest.raises(OSError):
        Observations(tmp_path).report("t", [line(ZERO_TIME, "1")])


@pytest.mark.parametrize("name", ["", "../t", ".t"])
def test_a_name_that_is_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="DNS name"):
        Observations(tmp_path).read(name)


@pytest.mark.parametrize(
    "text", ["2026-01-01", "2026-01-01 10:00:00Z", "2026-13-01T10:00:00Z", "2026-01-01T10:00:00", "now", "1.5"]
)
def test_only_rfc_3339_is_a_time(text: str) -> None:
    assert moment(text) is None
