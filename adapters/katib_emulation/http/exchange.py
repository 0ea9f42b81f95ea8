"""One HTTP connection: reads requests, answers each in a single write, streams watches and logs."""

from __future__ import annotations

import hmac
import http.server
import json
import select
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from katib_emulation.http.answers import Answer, Stream
from katib_emulation.statuses import ApiError, bad_request, internal, too_large, unsupported_media_type

if TYPE_CHECKING:
    from katib_emulation.http.server import Server

MAX_BODY_BYTES = 3 * 2**20
"""What the API server reads of one request."""

DRAIN_BYTES = 32 * 2**20
"""How much of a body that is too large is read away, so that the client sees the answer."""

JSON_TYPES = ("", "application/json")


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
        try:
            answer: Answer | Stream = self._answer()
        except ApiError as error:
            answer = Answer(error.code, error.body())
        except ConnectionError:
            raise
        except Exception as error:  # a defect of the emulation: the client is told, the server lives on
            traceback.print_exc(file=sys.stderr)
            answer = Answer(500, internal(repr(error)).body())
        self.server.requested(self.command, self.path, answer.code, time.perf_counter() - started)
        if isinstance(answer, Stream):
            self._stream(answer)
        else:
            self._write(answer)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_GET  # noqa: N815 (the base class wants these names)

    def _answer(self) -> Answer | Stream:
        body = self._body()
        self._authenticate()
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        content_type = (self.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        if body and self.command in ("POST", "PUT") and content_type not in JSON_TYPES:
            raise unsupported_media_type(content_type, JSON_TYPES[1:])
        return self.server.answer(self.command, url.path, query, _parsed(body), content_type)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise ApiError(411, "LengthRequired", "a body without Content-Length is not read by this server")
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError as error:
            self.close_connection = True
            raise bad_request("Content-Length is no number") from error
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            left = min(length, DRAIN_BYTES)
            while left > 0 and (piece := self.rfile.read(min(left, 2**16))):
                left -= len(piece)
            raise too_large(MAX_BODY_BYTES)
        return self.rfile.read(length) if length > 0 else b""

    def _authenticate(self) -> None:
        token = self.server.token
        if token is None:
            return
        given = self.headers.get("Authorization") or ""
        if not given:
            verb = self.command.lower()
            message = f'forbidden: User "system:anonymous" cannot {verb} path "{self.path}"; use the kubeconfig of this server'
            raise ApiError(403, "Forbidden", message, {})
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise ApiError(401, "Unauthorized", "Unauthorized")

    def _head(self, code: int, headers: dict[str, str]) -> bytes:
        if self.close_connection:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {code} {HTTPStatus(code).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _write(self, answer: Answer) -> None:
        content, content_type = answer.content()
        head = self._head(answer.code, {"Content-Type": content_type, "Content-Length": str(len(content))})
        self.connection.sendall(head if self.command == "HEAD" else head + content)

    def _stream(self, stream: Stream) -> None:
        self.close_connection = True
        head = self._head(200, {"Content-Type": stream.content_type, "Transfer-Encoding": "chunked"})
        self.connection.sendall(head)
        try:
            for piece in stream.pieces:
                if piece:
                    self.connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                elif _is_gone(self.connection):
                    return
            self.connection.sendall(b"0\r\n\r\n")
        finally:
            _close(stream.pieces)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body.strip() else None
    except ValueError as error:
        raise bad_request(f"the object provided is unrecognized: it is no JSON: {error}") from error


def _is_gone(connection: socket.socket) -> bool:
    """Whether the client has closed its end."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and not connection.recv(1, socket.MSG_PEEK)


def _close(pieces: Iterator[bytes | None]) -> None:
    close = getattr(pieces, "close", None)
    if close is not None:
        close()
