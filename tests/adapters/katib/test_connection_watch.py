"""Watches: every change comes once, whatever happens to the connection."""

from __future__ import annotations

import threading
from itertools import islice
from typing import Any

import pytest

from adapters.katib.fake_api import Answer, Asked, Cut, FakeApi, Streamed, event, failure, listing, thing
from tuneoff_adapters.kubernetes.api_errors import ApiError, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.resources import PODS
from waiting import until

PATH = "/api/v1/namespaces/n/pods"
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
OPEN = Streamed([], threading.Event())


def answer(api: FakeApi, lists: list[Any], watches: list[Any]) -> None:
    """Answer lists and watches, each in its order, the last one again and again."""

    def script(asked: Asked) -> Any:
        answers = watches if "watch" in asked.query else lists
        return answers.pop(0) if len(answers) > 1 else answers[0]

    api.on("GET", PATH, script)


def changes(connection: Connection, count: int) -> list[str]:
    found = islice(connection.watch(PODS, "n", {"a": "b"}), count)
    return [f"{change} {obj['metadata']['name']}{obj['metadata']['resourceVersion']}" for change, obj in found]


def test_list_comes_first_and_watches_go_on_from_its_version(api: FakeApi, connection: Connection) -> None:
    text = event("MODIFIED", thing("p", 8)) + event("ADDED", thing("q", 9)) + event("DELETED", thing("p", 10))
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "12"}})
    last = Streamed([event("ADDED", thing("r", 13))], threading.Event())
    answer(api, [listing(thing("p", 3), version="7")], [Streamed([text[:20], text[20:150], text[150:], bookmark]), last])
    assert changes(connection, 5) == ["ADDED p3", "MODIFIED p8", "ADDED q9", "DELETED p10", "ADDED r13"]
    assert [one.query.get("resourceVersion") for one in api.asked] == [None, "7", "12"]
    assert {one.query["labelSelector"] for one in api.asked} == {"a=b"}
    assert api.asked[1].query["timeoutSeconds"] == "1"


def test_cut_watch_lists_again_and_gives_the_difference(api: FakeApi, connection: Connection) -> None:
    partial = event("MODIFIED", thing("q", 4))[:30]
    answer(
        api,
        [listing(thing("p", 1), thing("q", 2)), listing(thing("q", 5), thing("r", 6), thing("s", 3))],
        [Streamed([event("ADDED", thing("s", 3)), partial], is_cut=True), OPEN],
    )
    assert changes(connection, 6) == ["ADDED p1", "ADDED q2", "ADDED s3", "DELETED p1", "MODIFIED q5", "ADDED r6"]


@pytest.mark.parametrize(
    "broken",
    [Streamed([event("ERROR", GONE)]), failure(410, "Expired", "too old"), Streamed([b"<html>\n"]), Streamed([b'{"x":1}\n'])],
)
def test_forgotten_version_and_line_that_is_no_event_list_again(api: FakeApi, connection: Connection, broken: Any) -> None:
    answer(api, [listing(thing("p", 1)), listing(thing("p", 2))], [broken, OPEN])
    assert changes(connection, 2) == ["ADDED p1", "MODIFIED p2"]


def test_lost_right_and_server_that_stays_away_end_the_watch(api: FakeApi) -> None:
    connection = Connection(api.kubeconfig, limits=Limits(api=0.2, call=0.1, pause=0.01))
    empty = Answer(200, {"items": None, "metadata": {}})
    told = event("ERROR", {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "pods is forbidden"})
    for refused in (failure(403, "Forbidden", "pods is forbidden"), Streamed([told])):
        answer(api, [empty], [refused])
        with pytest.raises(ApiError, match="pods is forbidden"):
            changes(connection, 1)
    answer(api, [empty], [Cut()])
    with pytest.raises(Unreachable, match="the connection was cut"):
        changes(connection, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "watched",
    [Streamed([], is_cut=True), Streamed([]), Streamed([event("BOOKMARK", {"metadata": {"resourceVersion": "6"}})])],
    ids=["cut", "regular", "bookmark"],
)
def test_watch_that_ends_at_once_does_not_flood_the_server(api: FakeApi, watched: Streamed) -> None:
    connection = Connection(api.kubeconfig, limits=Limits(api=1.0, pause=0.2, longest_pause=0.6))
    answer(api, [listing()], [watched])
    watch = connection.watch(PODS, "n")
    threading.Timer(0.6, watch.close).start()
    assert list(watch) == []
    assert 2 < len(api.asked) < 9


def test_close_in_another_thread_ends_a_waiting_watch(api: FakeApi, connection: Connection) -> None:
    answer(api, [listing(thing("p", 1))], [OPEN])
    watch = connection.watch(PODS, "n")
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.extend(change for change, _ in watch), daemon=True)
    thread.start()
    until(lambda: len(api.asked) >= 2)
    watch.close()
    thread.join(5)
    assert not thread.is_alive()
    assert seen == ["ADDED"]
