"""Counting an API server's requests: polling apart from watches and logs, and only while all trials wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.speed.child import MeasurementError
from benchmarks.speed.katib_polling import MARGIN_SECONDS, waiting
from benchmarks.speed.server_requests import LoggedRequest, most_within, read_access_log
from benchmarks.speed.sides import Side

PODS = "/api/v1/namespaces/n/pods"


def polls(*moments: float) -> list[LoggedRequest]:
    return [LoggedRequest(moment, "GET", "/api/v1/namespaces/n/events") for moment in moments]


def side(*times: tuple[float, float]) -> Side:
    """Return a run whose trials started and ended at these seconds."""
    trials = [(1, 0, int(started * 1e9), int(started * 1e9), int(ended * 1e9)) for started, ended in times]
    return Side(whole_seconds=0.0, span_seconds=0.0, cpu_seconds=0.0, details={"trials": trials})


@pytest.mark.parametrize(
    ("path", "sort"),
    [
        (f"{PODS}?watch=true&resourceVersion=3", "watch"),
        (f"{PODS}/p/log?container=c&follow=true", "log"),
        (PODS, "poll"),
        (f"{PODS}?watch=false", "poll"),
        (f"{PODS}/p/log?container=c", "poll"),
    ],
)
def test_watches_and_followed_logs_are_no_polling(path: str, sort: str) -> None:
    assert LoggedRequest(0.0, "GET", path).sort == sort


def test_an_access_log_is_read_without_the_line_that_is_being_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"10.500000\tGET\t{PODS}\t200\t0.31\n11.0")
    assert read_access_log(log) == [LoggedRequest(10.5, "GET", PODS)]


def test_the_fullest_second_is_found_whatever_the_order() -> None:
    assert most_within([], 1.0) == 0
    assert most_within([5.0, 0.0, 5.4, 9.0], 1.0) == 2
    assert most_within([0.9, 1.1, 1.9], 1.0) == 3  # across a whole second of the clock


def test_only_what_is_asked_while_all_trials_wait_counts() -> None:
    asked = polls(10.5, 12.0, 12.1, 17.0, 19.9)
    found = waiting(side((0.0, 10.0), (0.2, 9.0)), asked, offset=10.0)
    assert [request.t for request in found.requests] == [12.0, 12.1, 17.0]
    assert found.seconds == pytest.approx(8.8 - 2 * MARGIN_SECONDS)
    assert found.most_polls == 2


def test_too_much_polling_is_seen_where_watches_and_logs_are_not() -> None:
    streams = [LoggedRequest(5.0, "GET", f"{PODS}?watch=true"), LoggedRequest(5.0, "GET", f"{PODS}/p/log?follow=true")]
    found = waiting(side((0.0, 10.0)), [*polls(5.0, 5.4, 5.9), *streams], offset=0.0)
    assert found.most_polls == 3
    assert found.rates()["polling, mean per s"] == pytest.approx(3 / 7)


def test_trials_that_did_not_wait_together_are_no_measurement() -> None:
    with pytest.raises(MeasurementError):
        waiting(side((0.0, 5.0), (4.0, 9.0)), [], offset=0.0)
