"""The server of the page, and who may read: on loopback by the name asked for, anywhere else by a token."""

from __future__ import annotations

import contextlib
import errno
import hmac
import ipaddress
import logging
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tuneoff.errors import ExperimentError
from tuneoff.tell.live.site import MOST_FIELDS, Answer, Site, text_answer

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
HTTP_PORT = 80
REQUEST_SECONDS, ANSWER_SECONDS = 10.0, 60.0  # for all of a request, and for a part of the answer
MOST_REQUESTS = 64  # at once; the oldest has to go for another one
COMMON = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Connection", "close"),
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The rule of one server. `hosts` None: any name; `token` None: none is needed."""

    hosts: frozenset[str] | None
    token: str | None
    cookie: str  # the name of the cookie; it has the port, as cookies of one host are of all its ports

    def allows(self, query: str, cookies: Sequence[str]) -> bool:
        """Tell whether a request has the token, in its query or as cookie."""
        return self.token is None or self.is_in_query(query) or any(self._is_token(value) for value in self._values(cookies))

    def is_in_query(self, query: str) -> bool:
        """Tell whether the query has the token."""
        try:
            values = parse_qs(query, max_num_fields=MOST_FIELDS).get("token", [])
        except ValueError:
            return False
        return self.token is not None and any(self._is_token(value) for value in values)

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode(errors="replace"), (self.token or "").encode())

    def _values(self, cookies: Sequence[str]) -> list[str]:
        pairs = (part.partition("=") for header in cookies for part in header.split(";"))
        return [value.strip() for name, _, value in pairs if name.strip() == self.cookie]


class LiveServer(ThreadingHTTPServer):
    """Listens as soon as it is made."""

    daemon_threads = True
    block_on_close = False  # a slow client does not hold up the end
    request_queue_size = 2 * MOST_REQUESTS

    def __init__(self, address: tuple[Any, ...], family: socket.AddressFamily, site: Site) -> None:
        self.address_family = family
        self.site = site
        self._begun: dict[Any, float] = {}  # when each connection was taken (monotonic, seconds), the oldest first
        self._lock = threading.Lock()
        super().__init__(address[:2], Handler)
        bound, port = str(self.server_address[0]), self.server_port
        if ipaddress.ip_address(bound.partition("%")[0]).is_loopback:
            names = {*LOOPBACK_NAMES, f"[{bound}]" if ":" in bound else bound}
            hosts = {f"{name}:{port}" for name in names} | (names if port == HTTP_PORT else set())
            self.access = Access(hosts=frozenset(hosts), token=None, cookie=f"tuneoff_{port}")
        else:
            self.access = Access(hosts=None, token=secrets.token_urlsafe(32), cookie=f"tuneoff_{port}")

    def server_bind(self) -> None:
        """Bind without asking for the host's name, which may take long."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._begun[request] = time.monotonic()
            if len(self._begun) > MOST_REQUESTS:
                _end(next(iter(self._begun)), socket.SHUT_RDWR)
                del self._begun[next(iter(self._begun))]
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Called again and again: let no request trickle in for longer than its time."""
        with self._lock:
            late = [request for request, begun in self._begun.items() if begun < time.monotonic() - REQUEST_SECONDS]
            for request in late:
                _end(request, socket.SHUT_RD)  # an answer still goes out

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a connection failed", exc_info=True)

    @property
    def url(self) -> str:
        """The address to open, with the token where one is needed."""
        address = str(self.server_address[0])
        host = socket.gethostname() if ipaddress.ip_address(address.partition("%")[0]).is_unspecified else address
        token = f"?token={self.access.token}" if self.access.token is not None else ""
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/{token}"


def _end(request: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):  # the client was faster
        request.shutdown(how)


class Handler(BaseHTTPRequestHandler):
    """One request. Nothing that a client sends is kept, and nothing of it becomes a path."""

    server: LiveServer
    timeout = REQUEST_SECONDS
    protocol_version = "HTTP/1.0"
    server_version, sys_version = "tuneoff", ""
    requestline, command, request_version = "", "", "HTTP/1.0"  # until a request line was read

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        self.close_connection = True
        refusal = None
        hosts, named = self.server.access.hosts, self.headers.get_all("Host", [])
        if self.command != "GET":
            refusal = text_answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is served", ("Allow", "GET"))
        elif self.request_version == "HTTP/0.9" or not self.path.startswith("/"):
            refusal = text_answer(HTTPStatus.BAD_REQUEST, "a request must name a path of this server")
        elif len(named) != 1 or (hosts is not None and named[0].strip().lower() not in hosts):  # another name for loopback too
            text = "the Host header must name this server: open the address that it printed"
            refusal = text_answer(HTTPStatus.FORBIDDEN, text)
        if refusal is not None:
            self.request_version = "HTTP/1.0"  # an answer without headers is none
            self._send(refusal)
        return refusal is None

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        access = self.server.access
        if not access.allows(query, self.headers.get_all("Cookie", [])):
            self._send(
                text_answer(HTTPStatus.FORBIDDEN, "this needs the token: open the address that `tuneoff watch --serve` printed")
            )
            return
        cookie = f"{access.cookie}={access.token}; HttpOnly; SameSite=Strict; Path=/"  # kept by a browser for this page alone
        self._send(self.server.site.answer(path, query), *([("Set-Cookie", cookie)] if access.is_in_query(query) else []))

    def _send(self, answer: Answer, *headers: tuple[str, str]) -> None:
        self.connection.settimeout(ANSWER_SECONDS)
        self.send_response(answer.status)
        of_answer = (
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Content-Security-Policy", answer.policy),
        )
        for name, value in (*of_answer, *COMMON, *answer.headers, *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what could not be read as a request."""
        self.close_connection = True
        self.request_version = "HTTP/1.0"
        status = HTTPStatus(code)
        self._send(text_answer(status, status.phrase))

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("request: " + format, *args)


@contextlib.contextmanager
def serving(site: Site, address: str, port: int) -> Iterator[LiveServer]:
    """Yield the server, which answers until the block ends; port 0 is a free one.

    Raises:
        ExperimentError: the address or the port cannot be used.
    """
    try:
        family, _, _, _, endpoint = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        server = LiveServer(endpoint, family, site)
    except (OSError, OverflowError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            text = f"`--port` must be free on {address}, but {port} is in use; take another one, or 0 for any"
        elif number in (errno.EACCES, errno.EPERM):
            text = f"`--port` must be allowed to this user, but {port} on {address} is not; take one from 1024 on, or 0 for any"
        else:
            reason = getattr(error, "strerror", None) or str(error)
            text = f"`--address` must be an address of this host, but got {address!r} with port {port}: {reason}"
        raise ExperimentError(text) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="serve", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
