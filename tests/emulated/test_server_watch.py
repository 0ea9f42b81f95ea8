"""Watches over real HTTP, with a plain socket and with the unmodified `kubernetes` client."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any

import pytest

from emulated.served import KATIB, Served, served, trial
from katib_emulation import objects as table
from katib_emulation import server as watching
from katib_emulation.objects import EVENTS, TRIALS
from waiting import until


@pytest.fixture
def api(api: Served) -> Served:
    api.namespace()
    return api


class Watcher:
    """A watch that is read line by line."""

    def __init__(self, api: Served, query: str = "", path: str = f"{KATIB}/namespaces/ns/trials") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)
        self._connection.request("GET", f"{path}?watch=true&{query}")
        self._response = self._connection.getresponse()
        self.code = self._response.status

    def next(self) -> tuple[str, Any] | None:
        line = self._response.readline()
        if not line:
            return None
        event = json.loads(line)
        return event["type"], event["object"]

    def name(self) -> tuple[str, str] | None:
        event = self.next()
        return event and (event[0], event[1]["metadata"]["name"])

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def watching_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "process_request_thread" in thread.name}


def test_a_watch_without_a_version_begins_with_what_is_there(api: Served) -> None:
    api.store.create(TRIALS, trial("t1"), "ns")
    api.store.create(TRIALS, trial("t0"), "default")
    watcher = Watcher(api)
    assert watcher.name() == ("ADDED", "t1")
    api.store.update(TRIALS, "t1", "ns", lambda obj: obj["spec"].update(n=2))
    assert watcher.name() == ("MODIFIED", "t1")
    api.store.delete(TRIALS, "t1", "ns")
    event = watcher.next()
    assert event is not None
    assert event[0] == "DELETED"
    assert event[1]["metadata"]["resourceVersion"] == str(api.store.view(TRIALS)[0])
    watcher.close()


def test_one_object_is_watched_by_its_name(api: Served) -> None:
    watcher = Watcher(api, "fieldSelector=metadata.name%3Dt2")
    for name in ("t1", "t2"):
        api.store.create(TRIALS, trial(name), "ns")
    assert watcher.name() == ("ADDED", "t2")
    watcher.close()


@pytest.mark.slow
def test_a_watch_ends_after_its_timeout(api: Served) -> None:
    started = time.monotonic()
    watcher = Watcher(api, "timeoutSeconds=1")
    assert watcher.next() is None
    assert time.monotonic() - started > 0.9


def test_a_version_that_is_too_old_ends_the_watch_with_410(api: Served) -> None:
    for number in range(table.HISTORY + 1):
        api.store.create(EVENTS, {"metadata": {"name": f"x-{number}"}}, "ns")
    watcher = Watcher(api, "resourceVersion=2")
    event = watcher.next()
    assert watcher.code == 200
    assert event is not None
    assert (event[0], event[1]["code"], event[1]["reason"]) == ("ERROR", 410, "Expired")
    assert watcher.next() is None


def test_a_version_that_is_no_number_is_a_bad_request(api: Served) -> None:
    assert Watcher(api, "resourceVersion=new").code == 400


def test_the_thread_of_a_client_that_goes_away_ends(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "QUIET_SECONDS", 0.05)
    before = watching_threads()  # those of other tests
    watchers = [Watcher(api) for _ in range(3)]
    ours = watching_threads() - before
    assert len(ours) == 3  # the control: they are there
    for watcher in watchers:
        watcher.close()
    until(lambda: not ours & watching_threads())


def test_watches_end_with_the_server() -> None:
    with served() as api:
        watcher = Watcher(api, path="/api/v1/namespaces")
        assert watcher.name() == ("ADDED", "default")
    while watcher.next() is not None:  # fails where the connection stays open and silent
        pass


@pytest.mark.slow
def test_the_kubernetes_client_watches_and_learns_of_410(api: Served) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    client = kubernetes.client.ApiClient(kubernetes.client.Configuration(host=api.url))
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_config_map("ns", {"metadata": {"name": "c1"}})
    version = core.list_namespaced_config_map("ns").metadata.resource_version
    core.create_namespaced_config_map("ns", {"metadata": {"name": "c2"}})
    stream = kubernetes.watch.Watch().stream(
        core.list_namespaced_config_map, "ns", resource_version=version, timeout_seconds=1, _request_timeout=10
    )
    assert [(event["type"], event["object"].metadata.name) for event in stream] == [("ADDED", "c2")]
    for number in range(table.HISTORY + 1):
        api.store.create(EVENTS, {"metadata": {"name": f"x-{number}"}}, "ns")
    stream = kubernetes.watch.Watch().stream(
        core.list_namespaced_config_map, "ns", resource_version="2", timeout_seconds=1, _request_timeout=10
    )
    with pytest.raises(kubernetes.client.ApiException) as caught:
        list(stream)
    assert caught.value.status == 410
    client.close()


def test_the_kubernetes_client_creates_patches_and_deletes(api: Served) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    client = kubernetes.client.ApiClient(kubernetes.client.Configuration(host=api.url))
    core = kubernetes.client.CoreV1Api(client)
    made = core.create_namespaced_config_map(
        "ns", kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(name="c", labels={"a": "b"}), data={"x": "1"})
    )
    assert core.patch_namespaced_config_map("c", "ns", {"data": {"y": "2"}}).data == {"x": "1", "y": "2"}
    stale = {"metadata": {"resourceVersion": made.metadata.resource_version}, "data": {"y": "3"}}
    with pytest.raises(kubernetes.client.ApiException) as caught:
        core.patch_namespaced_config_map("c", "ns", stale)
    assert caught.value.status == 409
    assert core.delete_namespaced_config_map("c", "ns", propagation_policy="Foreground").status == "Success"
    review = kubernetes.client.AuthorizationV1Api(client).create_self_subject_access_review(
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    )
    assert review.status.allowed
    version = kubernetes.client.VersionApi(client).get_code()
    assert version.git_version.endswith("emulated")
    client.close()
