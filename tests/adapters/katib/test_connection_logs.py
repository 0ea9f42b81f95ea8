"""Logs: each line comes once, whatever happens to the connection."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from adapters.katib.fake_api import Answer, Cut, FakeApi, Streamed, failure
from tuneoff_adapters.kubernetes import stream
from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection, Limits

PATH = "/api/v1/namespaces/n/pods/p/log"


def after(api: FakeApi, requests: int) -> Callable[[], bool]:
    """The container is known to have ended once so many requests were made."""
    return lambda: len(api.asked) >= requests


def test_cut_in_the_middle_of_a_line_loses_and_repeats_nothing(api: FakeApi, connection: Connection) -> None:
    text = b"one\ntwo\nthree\nfour\n"
    for cut in range(len(text)):
        api.asked.clear()
        api.on("GET", PATH, Streamed([text[:cut]] if cut else [], is_cut=True), Streamed([text]))
        stream = connection.follow_log("n", "p", "main", after(api, 1))
        assert list(stream) == [b"one", b"two", b"three", b"four"]
        assert stream.is_complete
        assert not stream.was_rotated


def test_last_line_without_its_end_comes_too(api: FakeApi, connection: Connection) -> None:
    api.on("GET", PATH, Streamed([b"one\nbroken of"]))
    assert list(connection.follow_log("n", "p", "main", lambda: True)) == [b"one", b"broken of"]


def test_log_that_ends_before_its_container_is_asked_for_again(api: FakeApi, connection: Connection) -> None:
    api.on("GET", PATH, Streamed([b"one\n"]), Streamed([b"one\ntwo\n"]), Streamed([b"one\ntwo\nthree\n"]))
    assert list(connection.follow_log("n", "p", "main", after(api, 2))) == [b"one", b"two", b"three"]


def test_silent_connection_is_made_anew(api: FakeApi, connection: Connection, gate: threading.Event) -> None:
    api.on("GET", PATH, Streamed([b"one\n"], gate), Streamed([b"one\ntwo\n"]))
    assert list(connection.follow_log("n", "p", "main", after(api, 2))) == [b"one", b"two"]


def test_rotated_log_is_told(api: FakeApi, connection: Connection) -> None:
    api.on("GET", PATH, Streamed([b"one\ntwo\n"], is_cut=True), Streamed([b"three\nfour\n"]))
    stream = connection.follow_log("n", "p", "main", after(api, 1))
    assert list(stream) == [b"one", b"two", b"three", b"four"]
    assert stream.was_rotated


def test_deleted_pod_ends_the_log_as_incomplete(api: FakeApi, connection: Connection) -> None:
    api.on("GET", PATH, Streamed([b"one\n"], is_cut=True), failure(404, "NotFound", "pods p not found"))
    stream = connection.follow_log("n", "p", "main", lambda: False)
    assert list(stream) == [b"one"]
    assert not stream.is_complete


def test_refused_log_has_the_servers_message(api: FakeApi, connection: Connection) -> None:
    api.on("GET", PATH, failure(400, "BadRequest", 'container "main" is waiting to start: ContainerCreating'))
    with pytest.raises(ApiError, match="waiting to start"):
        list(connection.follow_log("n", "p", "main", lambda: True))


def test_refused_log_of_a_container_that_runs_is_asked_for_again(
    api: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_LONGEST_WAIT", 0.01)
    api.on("GET", PATH, failure(403, "Forbidden", "no"), Answer(200, b"one\n"))
    assert list(connection.follow_log("n", "p", "main", after(api, 2))) == [b"one"]


def test_close_in_another_thread_ends_a_waiting_log(api: FakeApi) -> None:
    api.on("GET", PATH, Streamed([b"one\n"], threading.Event()))
    connection = Connection(api.kubeconfig)
    stream = connection.follow_log("n", "p", "main", lambda: False)
    lines = iter(stream)
    assert next(lines) == b"one"
    threading.Timer(0.1, stream.close).start()
    assert list(lines) == []
    assert not stream.is_complete


def test_whole_log_can_be_read_at_once(api: FakeApi, connection: Connection) -> None:
    text = b"one\ntwo\nthr"
    api.on("GET", PATH, Streamed([text[:5]], is_cut=True), Answer(200, text))
    assert connection.read_log("n", "p", "main") == text
    api.on("GET", PATH, failure(404, "NotFound", "no such pod"))
    with pytest.raises(Missing):
        connection.read_log("n", "p", "main")


def test_lines_come_while_they_are_written(api: FakeApi, connection: Connection) -> None:
    gate = threading.Event()
    api.on("GET", PATH, Streamed([b"one\ntw", b"o\n"], gate), Streamed([b"one\ntwo\nthree\n"]))
    stream = iter(connection.follow_log("n", "p", "main", after(api, 1)))
    assert [next(stream), next(stream)] == [b"one", b"two"]
    gate.set()
    assert list(stream) == [b"three"]
    assert [one.query for one in api.asked] == [{"container": "main", "follow": "true"}, {"container": "main"}]


def test_empty_log_is_complete(api: FakeApi, connection: Connection) -> None:
    api.on("GET", PATH, Answer(200, b""))
    stream = connection.follow_log("n", "p", "main", lambda: True)
    assert list(stream) == []
    assert stream.is_complete


def test_server_that_stays_away_ends_the_log(api: FakeApi) -> None:
    api.on("GET", PATH, Streamed([b"one\n"], is_cut=True), Cut())
    connection = Connection(api.kubeconfig, limits=Limits(api=0.2, call=0.1, pause=0.01))
    stream = iter(connection.follow_log("n", "p", "main", lambda: False))
    assert next(stream) == b"one"
    with pytest.raises(Unreachable):
        next(stream)
