"""Logs over real HTTP (test_log_cuts.py cuts them everywhere): each line comes once, whatever happens to the connection."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from adapters.katib.fake_api import Answer, Cut, FakeApi, Streamed, failure
from tuneoff_adapters.kubernetes import stream
from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection, Limits

PATH = "/api/v1/namespaces/n/pods/p/log"
GONE = failure(404, "NotFound", "pods p not found")


@pytest.mark.parametrize(
    ("answers", "ended_after", "lines", "is_complete", "was_rotated"),
    [
        pytest.param([Answer(200, b"")], 0, "", True, False, id="empty"),
        pytest.param([Streamed([b"one\nbroken of"])], 0, "one broken-of", True, False, id="the last line without its end"),
        pytest.param([Streamed([b"one\ntw"], is_cut=True), Streamed([b"one\ntwo\n"])], 1, "one two", True, False, id="cut"),
        pytest.param([Streamed([b"one\n"]), Streamed([b"one\ntwo\n"])], 2, "one two", True, False, id="ends before its pod"),
        pytest.param([Streamed([b"one\n"], is_cut=True), Streamed([b"two\n"])], 1, "one two", True, True, id="rotated"),
        pytest.param([Streamed([b"one\n"], is_cut=True), GONE], 9, "one", False, False, id="deleted pod"),
        pytest.param([failure(403, "Forbidden", "no"), Answer(200, b"one\n")], 2, "one", True, False, id="refused for a while"),
    ],
)
def test_a_log_is_read_to_its_end(
    api: FakeApi,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[Any],
    ended_after: int,
    lines: str,
    is_complete: bool,
    was_rotated: bool,
) -> None:
    """`ended_after`: so many requests it is known that the container has ended."""
    monkeypatch.setattr(stream, "_LONGEST_WAIT", 0.01)
    api.on("GET", PATH, *answers)
    log = connection.follow_log("n", "p", "main", lambda: len(api.asked) >= ended_after)
    assert b" ".join(line.replace(b" ", b"-") for line in log).decode() == lines
    assert (log.is_complete, log.was_rotated) == (is_complete, was_rotated)


def test_lines_come_while_they_are_written_and_a_silent_connection_is_made_anew(api: FakeApi, connection: Connection) -> None:
    gate = threading.Event()
    api.on("GET", PATH, Streamed([b"one\ntw", b"o\n"], gate), Streamed([b"one\ntwo\nthree\n"]))
    log = iter(connection.follow_log("n", "p", "main", lambda: len(api.asked) >= 1))
    assert [next(log), next(log)] == [b"one", b"two"]
    assert list(log) == [b"three"]
    gate.set()
    assert [one.query for one in api.asked] == [{"container": "main", "follow": "true"}, {"container": "main"}]


def test_a_refusal_after_the_end_and_a_server_that_stays_away_end_the_log(api: FakeApi) -> None:
    connection = Connection(api.kubeconfig, limits=Limits(api=0.2, call=0.1, pause=0.01))
    api.on("GET", PATH, failure(400, "BadRequest", 'container "main" is waiting to start: ContainerCreating'))
    with pytest.raises(ApiError, match="waiting to start"):
        list(connection.follow_log("n", "p", "main", lambda: True))
    api.on("GET", PATH, Streamed([b"one\n"], is_cut=True), Cut())
    log = iter(connection.follow_log("n", "p", "main", lambda: False))
    assert next(log) == b"one"
    with pytest.raises(Unreachable):
        next(log)


def test_close_in_another_thread_ends_a_waiting_log(api: FakeApi) -> None:
    api.on("GET", PATH, Streamed([b"one\n"], threading.Event()))
    log = Connection(api.kubeconfig).follow_log("n", "p", "main", lambda: False)
    lines = iter(log)
    assert next(lines) == b"one"
    threading.Timer(0.1, log.close).start()
    assert list(lines) == []
    assert not log.is_complete


def test_whole_log_can_be_read_at_once(api: FakeApi, connection: Connection) -> None:
    text = b"one\ntwo\nthr"
    api.on("GET", PATH, Streamed([text[:5]], is_cut=True), Answer(200, text))
    assert connection.read_log("n", "p", "main") == text
    api.on("GET", PATH, GONE)
    with pytest.raises(Missing):
        connection.read_log("n", "p", "main")
