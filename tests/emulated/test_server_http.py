"""How the API talks HTTP: connections, bodies, formats, its own defects, and whom it lets in."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import Any

import pytest

from emulated.served import Served, experiment, served
from katib_emulation.objects import PODS


def test_one_connection_serves_many_requests_quickly(api: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
    connection.connect()
    opened = connection.sock
    seconds = []
    for _ in range(50):
        started = time.perf_counter()
        connection.request("GET", "/api/v1/namespaces/default")
        assert connection.getresponse().read()
        seconds.append(time.perf_counter() - started)
    assert connection.sock is opened
    connection.close()
    # 40 ms for most: header and body in two writes, by Nagle's algorithm and delayed acknowledgements
    assert sorted(seconds)[len(seconds) // 4] < 0.02


def test_a_refused_body_does_not_disturb_the_connection(api: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
    for _ in range(3):
        connection.request("POST", "/api/v1/namespaces/nope/configmaps", json.dumps({"metadata": {"name": "c"}}))
        response = connection.getresponse()
        assert (response.status, response.read()[:1]) == (404, b"{")
    connection.close()


def test_only_loopback_is_served(api: Served) -> None:
    assert api.server.server_address[0] == "127.0.0.1"
    others = [entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    for address in {str(other) for other in others if not str(other).startswith("127.")}:
        with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
            socket.create_connection((address, api.port), timeout=2)


def test_a_defect_is_a_500_and_the_server_lives_on(
    api: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        patch.setattr(type(api.store), "view", broken)
        code, status = api.ask("GET", "/api/v1/pods")
    assert (code, status["reason"]) == (500, "InternalError")
    assert "planted" in status["message"]
    assert "planted" in capsys.readouterr().err
    assert api.ask("GET", "/api/v1/pods")[0] == 200


def test_a_token_keeps_out_those_who_do_not_know_it() -> None:
    with served(token="secret") as api:
        assert api.ask("GET", "/version")[0] == 401
        assert api.ask("GET", "/version", headers={"Authorization": "Bearer guess"})[0] == 401
        assert api.ask("GET", "/version", headers={"Authorization": "Bearer secret"})[0] == 200
        with socket.create_connection(("127.0.0.1", api.port), timeout=10) as stranger:  # whose body is not waited for
            stranger.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n")
            assert stranger.recv(12) == b"HTTP/1.1 401"


def test_denied_rights_are_refused_and_reviewed() -> None:
    with served(denials=("create:experiments", "get:pods/log")) as api:
        path = api.namespace()
        code, status = api.ask("POST", f"{path}/experiments", experiment())
        assert (code, status["reason"]) == (403, "Forbidden")
        assert 'cannot create resource "experiments" in API group "kubeflow.org" in the namespace "ns"' in status["message"]
        assert api.ask("GET", f"{path}/experiments")[0] == 200
        api.store.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "ns")
        assert api.ask("GET", "/api/v1/namespaces/ns/pods/p")[0] == 200
        assert api.ask("GET", "/api/v1/namespaces/ns/pods/p/log")[0] == 403

        def allowed(**asked: str) -> bool:
            code, review = api.ask(
                "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}}
            )
            assert code == 201
            return bool(review["status"]["allowed"])

        assert not allowed(verb="create", resource="experiments", group="kubeflow.org")
        assert allowed(verb="get", resource="experiments", group="kubeflow.org")
        assert not allowed(verb="get", resource="pods", subresource="log")
        assert allowed(verb="get", resource="pods")
