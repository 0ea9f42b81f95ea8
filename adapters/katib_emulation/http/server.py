"""The HTTP server on loopback: from a request to the part that answers it."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from katib_emulation.http import paths
from katib_emulation.http.answers import Answer, Stream
from katib_emulation.http.api import Api
from katib_emulation.http.discovery import REVIEWS, discover
from katib_emulation.http.exchange import Exchange
from katib_emulation.http.log_endpoint import PodLogs, answer_log
from katib_emulation.http.queries import is_true
from katib_emulation.http.watching import watch
from katib_emulation.kinds import KATIB_VERSION, served_kinds
from katib_emulation.statuses import method_not_allowed, unknown_path

HOST = "127.0.0.1"

REVIEW_PATH = f"/apis/{REVIEWS[0]}/{REVIEWS[1]}/{REVIEWS[2]}"

HEALTH = ("/healthz", "/livez", "/readyz")


class Server(http.server.ThreadingHTTPServer):
    """Serves the API on `port` (0: a free one) to those who know the token (None: to everybody on this machine).

    Raises:
        OSError: the port is taken or not allowed.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self,
        api: Api,
        logs: PodLogs,
        port: int = 0,
        token: str | None = None,
        access_log: Path | None = None,
        katib_version: str = KATIB_VERSION,
    ) -> None:
        self.token = token
        self._kinds = served_kinds(katib_version)
        self._api = api
        self._logs = logs
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._access_log = access_log.open("a", buffering=1) if access_log else None
        try:
            super().__init__((HOST, port), Exchange)
        except OSError as error:
            raise OSError(
                f"cannot listen on port {port} of {HOST}: {error.strerror}; give another --port, or none for a free one"
            ) from error

    @property
    def url(self) -> str:
        """Where the server is reached."""
        return f"http://{HOST}:{self.server_address[1]}"

    def start(self) -> None:
        """Serve in an own thread."""
        threading.Thread(target=self.serve_forever, name="http", daemon=True).start()

    def stop(self) -> None:
        """Take no more requests and close the connections. Streams end when the store is closed."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, which looks at its end only twice a second
        self.shutdown()
        self.server_close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):  # the client was faster
                connection.shutdown(socket.SHUT_RDWR)
        if self._access_log:
            self._access_log.close()

    def connected(self, connection: socket.socket) -> None:
        """Remember an open connection."""
        with self._lock:
            self._connections.add(connection)

    def disconnected(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            self._connections.discard(connection)

    def requested(self, verb: str, path: str, code: int, seconds: float) -> None:
        """Write a line of the access log: Unix time, verb, path, code, milliseconds until the answer began."""
        if self._access_log:
            with contextlib.suppress(ValueError):  # closed: the server ends
                self._access_log.write(f"{time.time():.6f}\t{verb}\t{path}\t{code}\t{seconds * 1e3:.2f}\n")

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Any, content_type: str) -> Answer | Stream:
        """Answer one request.

        Raises:
            ApiError: it is refused.
        """
        if path in HEALTH:
            return Answer(200, b"ok")
        found = discover(path, self._kinds)
        if found is not None:
            if verb not in ("GET", "HEAD"):
                raise method_not_allowed()
            return Answer(200, found)
        if path == REVIEW_PATH:
            if verb != "POST":
                raise method_not_allowed()
            return Answer(201, self._api.access.review(body if isinstance(body, dict) else {}))
        return self._resource(verb, paths.parse(path), query, body, content_type)

    def _resource(
        self, verb: str, target: paths.Target, query: Mapping[str, str], body: Any, content_type: str
    ) -> Answer | Stream:
        api = self._api
        if target.kind not in self._kinds:
            raise unknown_path()
        match verb:
            case "GET" if target.subresource == "log":
                api.access.check("get", target.kind, "log", target.namespace, target.name)
                return answer_log(api.store, self._logs, target, query)
            case "GET" if target.name is None and is_true(query.get("watch")):
                api.access.check("watch", target.kind, None, target.namespace, None)
                return Stream(watch(api.store, target, query, api.selector(target, query)), "application/json")
            case "GET" | "HEAD":
                return Answer(*api.get(target, query))
            case "POST":
                return Answer(*api.create(target, body))
            case "PUT":
                return Answer(*api.put(target, body))
            case "PATCH":
                return Answer(*api.patch(target, body, content_type))
            case "DELETE":
                return Answer(*api.delete(target, query, body))
        raise method_not_allowed()
