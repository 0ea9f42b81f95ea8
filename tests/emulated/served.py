"""An API server on loopback for tests: the store over real HTTP, without controllers and node."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

from emulated.katib_world import experiment_named
from katib_emulation.__main__ import install
from katib_emulation.objects import Store
from katib_emulation.server import Api, Server

Object = dict[str, Any]
KATIB = "/apis/kubeflow.org/v1beta1"
INJECTED = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}


def fixed_log(namespace: str, pod: str, container: str | None, is_followed: bool) -> bytes | Iterator[bytes]:
    """Be the log of every container: three lines, or, followed, a line, a pause, a line."""
    return iter([b"one\n", b"", b"two\n"]) if is_followed else b"one\ntwo\nthree\n"


class Served:
    """A running server and its store."""

    def __init__(self, server: Server, store: Store) -> None:
        self.server = server
        self.store = store
        self.url = server.url
        self.port = int(server.server_address[1])

    def ask(self, verb: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Send one request; return (code, parsed JSON, or text where it is none)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(verb, path, content, headers or {})
            response = connection.getresponse()
            text = response.read()
            is_json = response.getheader("Content-Type") == "application/json"
            return response.status, json.loads(text) if is_json and text else text.decode()
        finally:
            connection.close()

    def namespace(self, name: str = "ns") -> str:
        """Create a namespace in which experiments may be created; return its collection of Katib objects."""
        code, _ = self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": INJECTED}})
        assert code == 201
        return f"{KATIB}/namespaces/{name}"


@contextlib.contextmanager
def served(token: str | None = None) -> Iterator[Served]:
    """Serve a store."""
    store = Store()
    install(store)
    server = Server(Api(store, fixed_log), token)
    server.start()
    try:
        yield Served(server, store)
    finally:
        store.close()
        server.stop()


def experiment(name: str = "e1") -> Object:
    """Return an experiment that Katib takes, in whatever namespace."""
    made = experiment_named(name)
    del made["metadata"]["namespace"]
    return made


def trial(name: str = "t1", **metadata: Any) -> Object:
    """Return a Trial object."""
    return {"apiVersion": "kubeflow.org/v1beta1", "kind": "Trial", "metadata": {"name": name, **metadata}, "spec": {"n": 1}}
