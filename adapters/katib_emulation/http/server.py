"""The HTTP server on loopback: reads requests, answers each in a single write, streams watches and logs."""

from __future__ import annotations

import contextlib
import hmac
import http.server
import json
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from katib_emulation.http import paths
from katib_emulation.http.api import REVIEW_PATH, Api
from katib_emulation.http.watching import is_true, watch
from katib_emulation.kinds import KATIB_VERSION, served_kinds
from katib_emulation.statuses import ApiError, bad_request, internal, method_not_allowed, unknown_path

HOST = "127.0.0.1"
MOST_STRANGERS = 64  # connections at once that have not shown the token, each with a thread

Answer = tuple[int, dict[str, Any] | bytes | Iterator[bytes | None]]
"""Code, and an object, a text, or a stream: an empty piece (or None) asks whether the client is still there."""


class PodLogs(Protocol):
    """Who has the containers' output: the node. Both refuse (400, 404) what is no container or waits to start."""

    def read_log(self, namespace: str, pod: str, container: str | None) -> bytes:
        """Return what the container has written so far; empty for a pod without a node."""
        ...

    def follow_log(self, namespace: str, pod: str, container: str | None) -> Iterator[bytes]:
        """Return the output from its beginning until the container has ended; empty pieces while nothing is written."""
        ...


class Server(http.server.ThreadingHTTPServer):
    """Serves the API on a free port to those who know the token (None: to everybody on this machine)."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        api: Api,
        logs: PodLogs,
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
        self._strangers: dict[socket.socket, None] = {}  # those of them that have not shown the token, the oldest first
        self._access_log = access_log.open("a", buffering=1) if access_log else None
        super().__init__((HOST, 0), Exchange)

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
                connection.shutdown(socket.SHUT_RD)  # an answer that is being written still goes out
        if self._access_log:
            self._access_log.close()

    def connected(self, connection: socket.socket) -> None:
        """Remember an open connection; of too many that have not shown the token the oldest has to go."""
        with self._lock:
            self._connections.add(connection)
            self._strangers[connection] = None
            if len(self._strangers) > MOST_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                with contextlib.suppress(OSError):  # it was faster
                    oldest.shutdown(socket.SHUT_RDWR)

    def let_in(self, connection: socket.socket) -> None:
        """Note that a connection has shown the token."""
        with self._lock:
            self._strangers.pop(connection, None)

    def disconnected(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            self._strangers.pop(connection, None)
            self._connections.discard(connection)

    def requested(self, verb: str, path: str, code: int, seconds: float) -> None:
        """Write a line of the access log: Unix time, verb, path, code, milliseconds until the answer began."""
        if self._access_log:
            with contextlib.suppress(ValueError):  # closed: the server ends
                self._access_log.write(f"{time.time():.6f}\t{verb}\t{path}\t{code}\t{seconds * 1e3:.2f}\n")

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        """Answer one request.

        Raises:
            ApiError: it is refused.
        """
        api = self._api
        if verb == "GET" and (found := paths.discover(path, self._kinds)) is not None:
            return 200, found
        if verb == "POST" and path == REVIEW_PATH:
            return 201, api.access.review(body)
        target = paths.parse(path)
        if target.kind not in self._kinds:
            raise unknown_path()
        if target.is_log and verb != "GET":
            raise method_not_allowed()
        match verb:
            case "GET" if target.is_log:
                api.access.check("get", target)
                read = self._logs.follow_log if is_true(query.get("follow")) else self._logs.read_log
                return 200, read(target.namespace or "", target.name or "", query.get("container") or None)
            case "GET" if target.name is None and is_true(query.get("watch")):
                api.access.check("watch", target)
                return 200, watch(api.store, target, query)
            case "GET":
                return 200, api.get(target, query)
            case "POST":
                return 201, api.create(target, body)
            case "PATCH":
                return 200, api.patch(target, body)
            case "DELETE":
                return 200, api.delete(target, query, body)
        raise method_not_allowed()


class Exchange(http.server.BaseHTTPRequestHandler):
    """Serves one connection until the client closes it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def setup(self) -> None:
        """Let the server end this connection too."""
        super().setup()
        self.server.connected(self.connection)

    def finish(self) -> None:
        """Forget the connection; the client may have closed it in the middle of an answer."""
        try:
            super().finish()
        except OSError:  # the client went away
            pass
        finally:
            self.server.disconnected(self.connection)

    def handle(self) -> None:
        """Serve requests until the client goes."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError, ValueError):  # the client, or this server, closed the connection
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Write no access log to stderr."""

    def do_GET(self) -> None:
        """Serve any request; named by the base class after its verb."""
        started = time.perf_counter()
        code: int
        try:
            code, found = self._answer()
        except ApiError as error:
            code, found = error.code, error.body()
        except ConnectionError:
            raise
        except Exception as error:  # a defect of the emulation: the client is told, the server lives on
            traceback.print_exc(file=sys.stderr)
            code, found = 500, internal(repr(error)).body()
        self.server.requested(self.command, self.path, code, time.perf_counter() - started)
        if isinstance(found, dict):
            self._write(code, json.dumps(found, separators=(",", ":")).encode() + b"\n", "application/json")
        elif isinstance(found, bytes):
            self._write(code, found, "text/plain")
        else:
            self._stream(found)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 (the base class wants these names)

    def _answer(self) -> Answer:
        token, given = self.server.token, self.headers.get("Authorization") or ""
        if token is not None and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            self.close_connection = True  # nothing more is read of it
            raise ApiError(401, "Unauthorized", "Unauthorized")
        self.server.let_in(self.connection)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        try:
            parsed = json.loads(body) if body.strip() else None
        except ValueError as error:
            raise bad_request(f"the object provided is unrecognized: it is no JSON: {error}") from error
        return self.server.answer(self.command, url.path, dict(parse_qsl(url.query, keep_blank_values=True)), parsed)

    def _head(self, code: int, headers: dict[str, str]) -> bytes:
        if self.close_connection:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {code} {HTTPStatus(code).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _write(self, code: int, content: bytes, content_type: str) -> None:
        head = self._head(code, {"Content-Type": content_type, "Content-Length": str(len(content))})
        self.connection.sendall(head + content)

    def _stream(self, pieces: Iterator[bytes | None]) -> None:
        self.close_connection = True
        kind = "text/plain" if urlsplit(self.path).path.endswith("/log") else "application/json"
        self.connection.sendall(self._head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"}))
        try:
            for piece in pieces:
                if piece:
                    self.connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                elif _is_gone(self.connection):
                    return
            self.connection.sendall(b"0\r\n\r\n")
        finally:
            if isinstance(pieces, Generator):
                pieces.close()


def _is_gone(connection: socket.socket) -> bool:
    """Whether the client has closed its end."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and not connection.recv(1, socket.MSG_PEEK)
