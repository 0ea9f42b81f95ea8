"""A proxy in front of an API server that misbehaves on demand: refuses, hangs, is slow, answers errors, cuts connections.

Every request gets a connection of its own to the server behind, and its answer is passed on byte by byte, so streams work.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: when it came (monotonic seconds), its method, its path with the query."""

    t: float
    method: str
    target: str


class FaultyProxy:
    """Serves on a free port from its making to `close`; all faults can be changed at any time, and hold for new requests."""

    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream)
        self._upstream = (address.hostname or HOST, address.port or 80)
        self.delay_seconds = 0.0  # before every answer
        self.status: int | None = None  # answered instead of passing the request on
        self.is_hanging = False  # requests are taken and never answered
        self.seen: list[Seen] = []
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._wake = threading.Event()
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def overlapping(self) -> int:
        """Return how many requests came while the one before them could not be answered yet, for its delay."""
        moments = sorted(seen.t for seen in self.seen)
        return sum(later - earlier < self.delay_seconds for earlier, later in itertools.pairwise(moments))

    def kubeconfig(self, original: Path, target: Path) -> Path:
        """Write a copy of a kubeconfig (JSON) that leads here, and return it."""
        content = json.loads(original.read_text())
        content["clusters"][0]["cluster"]["server"] = self.url
        target.write_text(json.dumps(content))
        return target

    def refuse(self) -> None:
        """Be away: cut all connections and refuse new ones, until `restore`."""
        self._close_listener()
        self.cut()

    def restore(self) -> None:
        """End every fault."""
        self.delay_seconds, self.status, self.is_hanging = 0.0, None, False
        if self._listener.fileno() < 0:
            self._listener = self._listen(self.port)
        self._wake.set()  # those that hang are cut
        self._wake = threading.Event()

    def cut(self) -> None:
        """Cut all connections; new ones are served."""
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._wake.set()
        self._close_listener()
        self.cut()

    def __enter__(self) -> FaultyProxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server((HOST, port), backlog=128)
        threading.Thread(target=self._accept, args=(listener,), name="proxy", daemon=True).start()
        return listener

    def _close_listener(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`, which would keep the port open
        self._listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), name="proxied", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._sockets.add(client)
        with contextlib.suppress(OSError), client:
            request = _request(client)
            if request is not None:
                self._answer(client, *request)
        with self._lock:
            self._sockets.discard(client)

    def _answer(self, client: socket.socket, head: list[bytes], body: bytes) -> None:
        method, target, _ = head[0].decode().split(" ", 2)
        self.seen.append(Seen(time.monotonic(), method, target))
        wake = self._wake
        if self.is_hanging:
            wake.wait()
            return
        if self.delay_seconds and wake.wait(self.delay_seconds):
            return
        if self.status is not None:
            client.sendall(_status(self.status))
            return
        with socket.create_connection(self._upstream) as server:
            with self._lock:
                self._sockets.add(server)
            kept = [line for line in head if not line.lower().startswith(b"connection:")]
            server.sendall(b"\r\n".join([*kept, b"Connection: close", b"", b""]) + body)
            start = server.recv(2**16)
            # told, since this connection ends: a client that keeps it for its next request would now and then be reset
            client.sendall(start.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            while chunk := server.recv(2**16):
                client.sendall(chunk)
        with self._lock:
            self._sockets.discard(server)


def _request(client: socket.socket) -> tuple[list[bytes], bytes] | None:
    """Read one request: its head's lines, and its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(2**16)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length and (chunk := client.recv(2**16)):
        body += chunk
    return lines, body


def _status(code: int) -> bytes:
    status = {"kind": "Status", "status": "Failure", "message": f"planted failure {code}", "reason": "Planted", "code": code}
    body = json.dumps(status).encode()
    head = (
        f"HTTP/1.1 {code} Planted\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
