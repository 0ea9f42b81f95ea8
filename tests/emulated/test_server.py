"""The API over real HTTP: paths, verbs, refusals, watches, and whom it lets in."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from typing import Any

import pytest

from emulated.served import KATIB, Served, experiment, served, trial
from katib_emulation import server as serving
from katib_emulation.objects import EVENTS, HISTORY, TRIALS
from waiting import until

PATCH = {"Content-Type": "application/merge-patch+json"}


def test_admission_guards_creations_and_updates(api: Served) -> None:
    path = api.namespace()
    bad = experiment()
    bad["spec"]["resumePolicy"] = "Always"
    code, status = api.ask("POST", f"{path}/experiments", bad)
    assert (code, "reason" in status) == (400, False)
    assert api.ask("GET", f"{path}/experiments/e1")[0] == 404
    api.ask("POST", f"{path}/experiments", experiment())
    code, changed = api.ask("PATCH", f"{path}/experiments/e1", {"spec": {"maxTrialCount": 5}}, PATCH)
    assert (code, changed["spec"]["maxTrialCount"]) == (200, 5)
    assert api.ask("PATCH", f"{path}/experiments/e1", {"spec": {"objective": {"type": "minimize"}}}, PATCH)[0] == 400
    assert api.ask("GET", f"{path}/experiments/e1")[1] == changed


def test_a_patch_merges_is_refused_where_it_is_stale_and_leaves_the_status(api: Served) -> None:
    path = api.namespace()
    made = api.ask("POST", f"{path}/trials", {**trial(), "status": {"a": 0}})[1]
    assert "status" not in made
    api.store.update(TRIALS, "t1", "ns", lambda obj: obj.update(status={"a": 1}))
    changed = api.ask("PATCH", f"{path}/trials/t1", {"status": {"a": 2}, "spec": {"m": 2}}, PATCH)[1]
    assert (changed["status"], changed["spec"]) == ({"a": 1}, {"n": 1, "m": 2})
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    assert api.ask("PATCH", f"{path}/trials/t1", stale, PATCH)[0] == 409


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"{", 400, "it is no JSON"),
        ({"metadata": {"name": "t"}}, 400, "Object 'Kind' is missing"),
        ({**trial(), "apiVersion": "kubeflow.org/v1"}, 400, "the apiVersion in the data"),
        (trial("T_1"), 422, "a lowercase RFC 1123 name"),
    ],
)
def test_bodies_that_are_no_such_object_are_refused(api: Served, body: Any, code: int, text: str) -> None:
    got, status = api.ask("POST", f"{api.namespace()}/trials", body)
    assert (got, status["kind"], status["code"]) == (code, "Status", code)
    assert text in status["message"]


def test_lists_select_by_labels_and_fields(api: Served) -> None:
    path = api.namespace()
    for name, labels in (("t1", {"e": "a", "x": "1"}), ("t2", {"e": "a"}), ("t3", {"e": "b"})):
        api.store.record_event(api.store.create(TRIALS, trial(name, labels=labels), "ns"), "Normal", "R", "m")

    def names(query: str) -> list[str]:
        code, found = api.ask("GET", f"{path}/trials?{query}")
        assert (code, found["kind"], found["metadata"]["resourceVersion"]) == (200, "TrialList", str(api.store.view(TRIALS)[0]))
        return [item["metadata"]["name"] for item in found["items"]]

    assert names("labelSelector=e%3Da") == ["t1", "t2"]
    assert names("labelSelector=e%3D%3Da,x%3D1") == ["t1"]
    assert names("fieldSelector=metadata.name%3Dt2") == ["t2"]
    assert api.ask("GET", f"{path}/trials?labelSelector=e!%3Da")[0] == 400
    assert len(api.ask("GET", f"{KATIB}/trials")[1]["items"]) == 3
    events = api.ask("GET", "/api/v1/namespaces/ns/events?fieldSelector=involvedObject.name%3Dt2")[1]["items"]
    assert [event["involvedObject"]["name"] for event in events] == ["t2"]


def test_one_connection_serves_many_requests_quickly(api: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
    connection.connect()
    opened = connection.sock
    seconds = []
    for number in range(50):
        started = time.perf_counter()
        method = "POST" if number % 2 else "GET"  # a body that is refused is read too
        connection.request(method, "/api/v1/namespaces/nope/configmaps", b'{"metadata":{"name":"c"}}' if number % 2 else None)
        assert connection.getresponse().read()[:1] == b"{"
        seconds.append(time.perf_counter() - started)
    assert connection.sock is opened
    connection.close()
    # 40 ms for most: header and body in two writes, by Nagle's algorithm and delayed acknowledgements
    assert sorted(seconds)[len(seconds) // 4] < 0.02


def test_a_token_keeps_out_those_who_do_not_know_it_and_only_loopback_is_served() -> None:
    with served(token="secret") as api:
        assert api.server.server_address[0] == "127.0.0.1"
        for headers, code in (({}, 401), ({"Authorization": "Bearer guess"}, 401), ({"Authorization": "Bearer secret"}, 200)):
            assert api.ask("GET", "/version", headers=headers)[0] == code
        with socket.create_connection(("127.0.0.1", api.port), timeout=10) as stranger:  # whose body is not waited for
            stranger.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n")
            assert stranger.recv(12) == b"HTTP/1.1 401"


class Watcher:
    """A watch that is read line by line."""

    def __init__(self, api: Served, query: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)
        self._connection.request("GET", f"{KATIB}/namespaces/ns/trials?watch=true&{query}")
        self._response = self._connection.getresponse()

    def next(self) -> tuple[str, Any] | None:
        line = self._response.readline()
        event = json.loads(line or "null")
        return event and (event["type"], event["object"]["metadata"].get("name") or event["object"]["code"])

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def test_a_watch_begins_with_what_is_there_selects_and_ends_with_the_server() -> None:
    with served() as api:
        api.namespace()
        for name, namespace in (("t1", "ns"), ("t0", "default")):
            api.store.create(TRIALS, trial(name), namespace)
        watcher, selecting = Watcher(api), Watcher(api, "fieldSelector=metadata.name%3Dt2")
        assert watcher.next() == ("ADDED", "t1")
        api.store.update(TRIALS, "t1", "ns", lambda obj: obj["spec"].update(n=2))
        api.store.delete(TRIALS, "t1", "ns")
        api.store.create(TRIALS, trial("t2"), "ns")
        assert [watcher.next() for _ in range(3)] == [("MODIFIED", "t1"), ("DELETED", "t1"), ("ADDED", "t2")]
        assert selecting.next() == ("ADDED", "t2")
    assert watcher.next() is None  # fails where the connection stays open and silent


def test_a_watch_goes_on_from_a_version_or_ends_with_410(api: Served) -> None:
    api.namespace()
    version = api.store.create(TRIALS, trial("t1"), "ns")["metadata"]["resourceVersion"]
    api.store.create(TRIALS, trial("t2"), "ns")
    assert Watcher(api, f"resourceVersion={version}").next() == ("ADDED", "t2")
    for number in range(HISTORY + 1):
        api.store.create(EVENTS, {"metadata": {"name": f"x-{number}"}}, "ns")
    late = Watcher(api, f"resourceVersion={version}")
    assert [late.next(), late.next()] == [("ERROR", 410), None]


def test_the_thread_of_a_watching_client_that_goes_away_ends(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if "process_request_thread" in thread.name}

    monkeypatch.setattr(serving, "QUIET_SECONDS", 0.05)
    before = threads()  # those of other tests
    watchers = [Watcher(api) for _ in range(3)]
    ours = threads() - before
    assert len(ours) == 3  # the control: they are there
    for watcher in watchers:
        watcher.close()
    until(lambda: not ours & threads())
