"""A client over raw sockets, and a served folder in which one run of six has ended."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path

from builders.live_folders import Folder
from tuneoff.tell.live.server import LiveServer
from tuneoff.tell.live.site import LIVE, Site
from tuneoff.tell.live.watcher import Watcher

DEADLINE_SECONDS = 20.0


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: str


def place_of(server: LiveServer) -> tuple[str, int]:
    return str(server.server_address[0]), server.server_port


def exchange(server: LiveServer, request: bytes) -> Reply:
    """Send bytes and return the answer; status 0: none came."""
    with socket.create_connection(place_of(server), timeout=DEADLINE_SECONDS) as connection:
        with contextlib.suppress(ConnectionError):  # it may answer before it has read all
            connection.sendall(request)
        return read(connection)


def read(connection: socket.socket) -> Reply:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            data += part
    if not data:
        return Reply(0, {}, "")
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Reply(int(first.split()[1]), headers, body.decode())


def get(server: LiveServer, target: str = "/", *headers: str, host: str | None = None, method: str = "GET") -> Reply:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host or f'127.0.0.1:{server.server_port}'}", *headers, "", ""]
    return exchange(server, "\r\n".join(lines).encode())


def made_folder(path: Path) -> Folder:
    folder = Folder(path / "results")
    folder.end("serial", 0)
    return folder


def made_site(folder: Folder) -> Site:
    return Site(Watcher(folder.path), lambda path: f"{LIVE}<h1>report of {path.name}</h1>")
