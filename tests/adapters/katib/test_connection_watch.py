"""Watches: every change comes once, whatever happens to the connection."""

from __future__ import annotations

import json
import threading
from itertools import islice

import pytest

from adapters.katib.fake_api import Answer, Cut, FakeApi, Streamed, event, failure, listing, thing
from tuneoff_adapters.kubernetes.api_errors import ApiError, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.resources import PODS
from waiting import until

PATH = "/api/v1/namespaces/n/pods"


class Script:
    """What lists and watches answer, each in its order."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.lists: list[object] = []
        self.watches: list[object] = []
        api.on("GET", PATH, self)

    def __call__(self, asked: object) -> object:
        answers = self.watches if "watch" in self.api.asked[-1].query else self.lists
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def script(api: FakeApi) -> Script:
    return Script(api)


def changes(connection: Connection, count: int) -> list[tuple[str, str, str]]:
    found = islice(connection.watch(PODS, "n", {"a": "b"}), count)
    return [(change, obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for change, obj in found]


def test_events_that_share_a_chunk_or_span_two_are_whole(script: Script, connection: Connection) -> None:
    text = event("ADDED", thing("p", 1)) + event("MODIFIED", thing("p", 2)) + event("DELETED", thing("p", 3))
    script.lists = [listing()]
    script.watches = [Streamed([text[:20], text[20:150], text[150:]], threading.Event())]
    assert [change for change, *_ in changes(connection, 3)] == ["ADDED", "MODIFIED", "DELETED"]


def test_regular_end_goes_on_without_a_list(script: Script, connection: Connection) -> None:
    script.lists = [listing(version="1")]
    script.watches = [
        Streamed([event("ADDED", thing("p", 5)), event("BOOKMARK", {"metadata": {"resourceVersion": "6"}})]),
        Streamed([event("ADDED", thing("q", 9))], threading.Event()),
    ]
    assert [name for _, name, _ in changes(connection, 2)] == ["p", "q"]
    assert [one.query.get("resourceVersion") for one in script.api.asked] == [None, "1", "6"]


def test_cut_watch_lists_again_and_gives_the_difference(script: Script, connection: Connection) -> None:
    script.lists = [listing(thing("p", 1), thing("q", 2)), listing(thing("q", 5), thing("r", 6), thing("s", 3))]
    partial = event("MODIFIED", thing("q", 4))[:30]
    script.watches = [Streamed([event("ADDED", thing("s", 3)), partial], is_cut=True), Streamed([], threading.Event())]
    assert changes(connection, 6) == [
        ("ADDED", "p", "1"),
        ("ADDED", "q", "2"),
        ("ADDED", "s", "3"),
        ("DELETED", "p", "1"),
        ("MODIFIED", "q", "5"),
        ("ADDED", "r", "6"),
    ]


GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


@pytest.mark.parametrize("answer", [Streamed([event("ERROR", GONE)]), failure(410, "Expired", "too old")])
def test_forgotten_version_lists_again(script: Script, connection: Connection, answer: object) -> None:
    script.lists = [listing(thing("p", 1)), listing(thing("p", 2))]
    script.watches = [answer, Streamed([], threading.Event())]
    assert changes(connection, 2) == [("ADDED", "p", "1"), ("MODIFIED", "p", "2")]


def test_lost_right_ends_the_watch_with_the_servers_message(script: Script, connection: Connection) -> None:
    script.lists = [listing()]
    script.watches = [failure(403, "Forbidden", "pods is forbidden")]
    with pytest.raises(ApiError, match="pods is forbidden"):
        changes(connection, 1)


def test_line_that_is_no_event_lists_again(script: Script, connection: Connection) -> None:
    script.lists = [listing(thing("p", 1)), listing(thing("p", 2))]
    script.watches = [Streamed([b"<html>\n"]), Streamed([b"[]\n"]), Streamed([json.dumps({"x": 1}).encode() + b"\n"])]
    assert changes(connection, 2) == [("ADDED", "p", "1"), ("MODIFIED", "p", "2")]


def test_watch_that_breaks_at_once_does_not_flood_the_server(script: Script) -> None:
    connection = Connection(script.api.kubeconfig, limits=Limits(api=1.0, pause=0.1, longest_pause=0.2))
    script.lists = [listing()]
    script.watches = [Streamed([], is_cut=True)]
    watch = connection.watch(PODS, "n")
    threading.Timer(0.5, watch.close).start()
    assert list(watch) == []
    assert len(script.api.asked) < 15


@pytest.mark.slow
@pytest.mark.parametrize("parts", [[], [event("BOOKMARK", {"metadata": {"resourceVersion": "6"}})]])
def test_watch_that_ends_regularly_at_once_does_not_flood_the_server(script: Script, parts: list[bytes]) -> None:
    connection = Connection(script.api.kubeconfig, limits=Limits(api=1.0, pause=0.3, longest_pause=1.0))
    script.lists = [listing()]
    script.watches = [Streamed(parts)]
    watch = connection.watch(PODS, "n")
    threading.Timer(1.0, watch.close).start()
    assert list(watch) == []
    assert 2 < len(script.api.asked) < 8


def test_close_in_another_thread_ends_a_waiting_watch(script: Script, connection: Connection) -> None:
    script.lists = [listing(thing("p", 1))]
    script.watches = [Streamed([], threading.Event())]
    watch = connection.watch(PODS, "n")
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.extend(change for change, _ in watch), daemon=True)
    thread.start()
    until(lambda: len(script.api.asked) >= 2)
    watch.close()
    thread.join(5)
    assert not thread.is_alive()
    assert seen == ["ADDED"]


def test_list_in_one_answer_may_be_empty(script: Script, connection: Connection) -> None:
    script.lists = [Answer(200, {"items": None, "metadata": {}})]
    script.watches = [Streamed([event("ADDED", thing("p", 1))], threading.Event())]
    assert len(changes(connection, 1)) == 1


def test_list_comes_first_and_the_watch_goes_on_from_its_version(script: Script, connection: Connection) -> None:
    script.lists = [listing(thing("p", 3), version="7")]
    script.watches = [Streamed([event("MODIFIED", thing("p", 8)), event("ADDED", thing("q", 9))], threading.Event())]
    assert changes(connection, 3) == [("ADDED", "p", "3"), ("MODIFIED", "p", "8"), ("ADDED", "q", "9")]
    asked = script.api.asked
    assert [one.query.get("resourceVersion") for one in asked] == [None, "7"]
    assert {one.query["labelSelector"] for one in asked} == {"a=b"}
    assert asked[1].query["timeoutSeconds"] == "1"


def test_server_that_stays_away_ends_the_watch(script: Script) -> None:
    script.lists = [listing()]
    script.watches = [Cut()]
    connection = Connection(script.api.kubeconfig, limits=Limits(api=0.2, call=0.1, pause=0.01))
    with pytest.raises(Unreachable, match="the connection was cut"):
        changes(connection, 1)
