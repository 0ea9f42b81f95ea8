"""The connection to an API server: kubeconfig, answers, refusals and limits."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.fake_api import Answer, Cut, FakeApi, Silent, failure, listing, thing, write_kubeconfig
from tuneoff.errors import InfrastructureError, StepError
from tuneoff_adapters.kubernetes.api_errors import ApiError, Conflict, Missing, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.resources import CONFIG_MAPS, EXPERIMENTS, NAMESPACES, PODS
from tuneoff_adapters.kubernetes.transport import client_configuration
from waiting import until

EXPERIMENT_PATH = "/apis/kubeflow.org/v1beta1/namespaces/n/experiments"
EXPERIMENT: dict[str, Any] = {"metadata": {"name": "e", "namespace": "n", "labels": {"run": "1"}}, "spec": {}}
IMPATIENT = Limits(api=0.2, call=0.1, pause=0.01, longest_pause=0.02)


def test_object_is_read_as_plain_json_with_the_kubeconfigs_token(api: FakeApi, connection: Connection) -> None:
    pod = thing("p", labels={"a/b": "c"})
    api.on("GET", "/api/v1/namespaces/n/pods/p", Answer(200, pod))
    assert connection.get(PODS, "p", "n") == pod
    assert api.asked[0].headers["authorization"] == "Bearer secret-token"
    assert connection.requests == 1
    for path, namespace in (("/api/v1/namespaces/n/pods", "n"), ("/api/v1/pods", None)):
        api.on("GET", path, listing(pod))
        assert connection.items(PODS, namespace, {"b": "2", "a/x": "1"}) == [pod]
        assert api.asked[-1].query["labelSelector"] == "a/x=1,b=2"


def test_missing_object_is_missing_for_get_and_none_for_find(connection: Connection) -> None:
    with pytest.raises(Missing, match="404 NotFound"):
        connection.get(PODS, "p", "n")
    assert connection.find(PODS, "p", "n") is None
    assert connection.delete(PODS, "p", "n") is False


BUSY = Answer(429, {"message": "busy"}, {"Retry-After": "1"})  # which the HTTP library would wait for


@pytest.mark.parametrize(
    ("reaction", "kind", "words", "is_repeated"),
    [
        (lambda _: failure(400, "", 'webhook "v" denied\nthe request'), ApiError, "denied the request", False),
        (lambda _: failure(403, "No", "never"), ApiError, "never", False),
        (lambda _: Answer(403, b"<h1>go\n away</h1>"), ApiError, "answered 403: <h1>go away</h1>", False),
        (lambda _: Answer(200, b"<html>welcome</html>"), Unreachable, "this is not a Kubernetes API", False),
        (lambda _: Answer(200, b"[]"), Unreachable, "this is not a Kubernetes API", False),
        (lambda _: failure(503, "Unavailable", "overloaded"), InfrastructureError, "answered 503 Unavailable: overloaded", True),
        (lambda _: BUSY, InfrastructureError, "busy", True),
        (lambda _: Cut(), Unreachable, "the connection was cut", True),
        (Silent, Unreachable, "no answer in time", True),
    ],
)
def test_what_is_no_answer_is_one_line_and_asked_for_again_where_it_may_pass(
    api: FakeApi, gate: threading.Event, reaction: Callable[[threading.Event], Any], kind: type, words: str, is_repeated: bool
) -> None:
    api.on("GET", "/version", reaction(gate))
    connection = Connection(api.kubeconfig, limits=Limits(api=0.5, call=0.2, pause=0.05, longest_pause=0.05))
    start = time.monotonic()
    with pytest.raises(StepError, match=words) as caught:
        connection.read("/version")
    assert time.monotonic() - start < 10.0  # what is silent would be so for 30 s
    assert isinstance(caught.value, kind)
    assert isinstance(caught.value, InfrastructureError) == (kind is not ApiError)  # who is charged
    assert "\n" not in str(caught.value)
    assert (connection.requests > 1) == is_repeated
    assert connection.requests == len(api.asked) < 40
    api.on("GET", "/api/v1/namespaces/n", Answer(200, thing("n")))
    assert connection.limited(Limits()).get(NAMESPACES, "n")  # the next call works


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_passing_refusals_are_tried_again(api: FakeApi, connection: Connection, code: int) -> None:
    api.on("GET", "/api/v1/namespaces/n/pods/p", failure(code, "Busy", "not now"), Answer(200, thing("p")))
    assert connection.get(PODS, "p", "n")
    assert connection.requests == 2


def test_broken_tls_is_told_at_once(api: FakeApi, tmp_path: Path) -> None:
    connection = Connection(write_kubeconfig(tmp_path / "tls", api.url.replace("http:", "https:")))
    with pytest.raises(Unreachable, match="SSL"):
        connection.read("/version")
    assert connection.requests == 1


def test_unknown_host_is_told(tmp_path: Path) -> None:
    connection = Connection(write_kubeconfig(tmp_path / "kubeconfig", "http://no-such-host.invalid:6443"), limits=IMPATIENT)
    with pytest.raises(Unreachable, match=r"Failed to resolve 'no-such-host\.invalid'"):
        connection.read("/version")


def test_known_reason_for_no_answer_ends_the_patience(api: FakeApi) -> None:
    def check() -> None:
        raise StepError("the server was killed")

    api.on("GET", "/version", Cut())
    with pytest.raises(StepError, match="the server was killed"):
        Connection(api.kubeconfig, check=check).read("/version")
    assert len(api.asked) == 1


def test_connections_that_cannot_be_made_have_a_limit_of_their_own(api: FakeApi) -> None:
    api.close()
    start = time.monotonic()
    with pytest.raises(Unreachable):
        Connection(api.kubeconfig, limits=Limits(api=30.0, connect=0.0)).read("/version")
    assert time.monotonic() - start < 15.0


def test_experiment_goes_through_the_sdk_as_it_is_with_a_timeout(
    api: FakeApi, connection: Connection, gate: threading.Event
) -> None:
    api.on("POST", EXPERIMENT_PATH, Answer(201, thing("e")))
    api.on("GET", f"{EXPERIMENT_PATH}/e", Answer(200, thing("e", 2)))
    assert connection.create_experiment(EXPERIMENT) == thing("e", 2)
    assert api.asked[0].body == EXPERIMENT
    api.on("POST", EXPERIMENT_PATH, failure(400, "", "spec.x: must be greater than 0"))
    with pytest.raises(ApiError, match=r"spec\.x: must be greater than 0"):  # the SDK hides it
        connection.create_experiment(EXPERIMENT)
    api.on("POST", EXPERIMENT_PATH, Silent(gate))
    start = time.monotonic()
    with pytest.raises(Unreachable):
        Connection(api.kubeconfig, limits=IMPATIENT).create_experiment(EXPERIMENT)
    assert time.monotonic() - start < 10.0


@pytest.mark.parametrize(("labels", "is_ours"), [({"run": "1", "more": "x"}, True), ({"run": "2"}, False)])
def test_what_an_unanswered_try_has_created_is_ours_by_its_labels(
    api: FakeApi, connection: Connection, labels: dict[str, str], is_ours: bool
) -> None:
    kept = {"metadata": {"name": "c", "labels": labels}}
    path = "/api/v1/namespaces/n/configmaps"
    api.on("POST", path, Cut(), failure(409, "AlreadyExists", "it already exists"))
    api.on("GET", f"{path}/c", Answer(200, kept))
    ours = {"metadata": {"name": "c", "labels": {"run": "1"}}}
    if is_ours:
        assert connection.create(CONFIG_MAPS, ours, "n") == kept
    else:
        with pytest.raises(Conflict):
            connection.create(CONFIG_MAPS, ours, "n")


def test_deletion_says_how_and_one_that_goes_on_already_counts(api: FakeApi, connection: Connection) -> None:
    api.on("DELETE", f"{EXPERIMENT_PATH}/e", Answer(200, {}))
    assert connection.delete(EXPERIMENTS, "e", "n", "Foreground")
    assert api.asked[0].body["propagationPolicy"] == "Foreground"
    api.on("DELETE", "/api/v1/namespaces/n", failure(409, "Conflict", "the system is ensuring all content is removed"))
    assert connection.delete(NAMESPACES, "n") is True


def test_closing_ends_a_call_that_waits_for_another_try(api: FakeApi) -> None:
    api.on("GET", "/version", failure(503, "Unavailable", "starting"))
    connection = Connection(api.kubeconfig, limits=Limits(api=60.0, pause=30.0))

    def close() -> None:
        until(lambda: api.asked)
        connection.close()

    threading.Thread(target=close).start()
    start = time.monotonic()
    with pytest.raises(ApiError, match="starting"):
        connection.read("/version")
    assert time.monotonic() - start < 15.0


@pytest.mark.slow
def test_process_ends_while_the_server_hangs(api: FakeApi, gate: threading.Event) -> None:
    api.on("GET", "/version", Silent(gate))
    program = (
        "import sys, threading, pathlib, time\n"
        "from tuneoff_adapters.kubernetes.connection import Connection, Limits\n"
        "c = Connection(pathlib.Path(sys.argv[1]), limits=Limits(call=60.0))\n"
        "threading.Thread(target=c.read, args=('/version',), daemon=True).start()\n"
        "while not c.requests: time.sleep(0.01)\n"
    )
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", program, str(api.kubeconfig)], check=True, timeout=60)
    assert time.monotonic() - start < 25.0  # it would be silent for 30 s


def test_missing_kubeconfig_and_unknown_context_are_named(api: FakeApi, tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"there is no kubeconfig at .*nowhere"):
        Connection(tmp_path / "nowhere")
    with pytest.raises(StepError, match=r"context 'other'.*its contexts: fake"):
        Connection(api.kubeconfig, "other")


@pytest.mark.parametrize("content", ["", "[]", "a: [", "apiVersion: v1\nkind: Config\nclusters: 3\n", "\0\1"])
def test_broken_kubeconfig_is_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(StepError, match="cannot use kubeconfig") as caught:
        Connection(path)
    assert "\n" not in str(caught.value)


def test_credential_program_that_waits_for_a_person_is_given_up(api: FakeApi) -> None:
    content = json.loads(api.kubeconfig.read_text())
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["2"], "interactiveMode": "Never"}
    content["users"][0]["user"] = {"exec": program}
    api.kubeconfig.write_text(json.dumps(content))
    with pytest.raises(StepError, match=r"reading the kubeconfig takes longer than 0.2 s"):
        client_configuration(api.kubeconfig, None, within_seconds=0.2)


def test_proxy_of_the_environment_is_not_used_for_loopback(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.on("GET", "/version", Answer(200, {}))
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert Connection(api.kubeconfig, limits=Limits(api=20.0)).read("/version") == {}
