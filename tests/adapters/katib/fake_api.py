"""A small HTTP server whose answers a test writes down; it records what is asked."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """What is sent: a JSON value or bytes."""

    code: int = 200
    value: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Streamed:
    """A chunked answer: the parts, then a wait for `until`, then its regular end, or a cut."""

    parts: Sequence[bytes]
    until: threading.Event | None = None
    is_cut: bool = False


@dataclass(frozen=True)
class Silent:
    """No answer until the event is set; then the connection is cut."""

    until: threading.Event


class Cut:
    """The connection is cut without an answer."""


Reaction = Answer | Streamed | Silent | Cut | Callable[[Asked], Any]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # by default 5: of the checks' questions, which come all at once, some would be reset


def failure(code: int, reason: str, message: str) -> Answer:
    """A Kubernetes Status."""
    return Answer(code, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code})


def listing(*items: dict[str, Any], version: str = "1") -> Answer:
    return Answer(200, {"kind": "List", "metadata": {"resourceVersion": version}, "items": list(items)})


def event(change: str, obj: dict[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": change, "object": obj}).encode() + b"\n"


def thing(name: str, version: int = 1, **more: Any) -> dict[str, Any]:
    """An object with what every object has."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}, **more}


class FakeApi:
    """Answers in the order given for (method, path); the last one again and again. Unknown paths are 404."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[Asked] = []
        self._answers: dict[tuple[str, str], list[Reaction]] = {}
        self._lock = threading.Lock()
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def _serve(self) -> None:
                api._serve(self)

            do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _serve  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.kubeconfig = write_kubeconfig(folder / "kubeconfig", self.url)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def on(self, method: str, path: str, *answers: Reaction) -> None:
        self._answers[method, path] = list(answers)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> FakeApi:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _serve(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        asked = Asked(
            handler.command,
            parts.path,
            dict(parse_qsl(parts.query)),
            json.loads(body) if body else None,
            {key.lower(): value for key, value in handler.headers.items()},
        )
        with self._lock:
            self.asked.append(asked)
            answers = self._answers.get((asked.method, asked.path))
            reaction: Any = failure(404, "NotFound", f"{asked.path} not found")
            if answers:
                reaction = answers.pop(0) if len(answers) > 1 else answers[0]
        while callable(reaction):
            reaction = reaction(asked)
        _react(handler, reaction)


def _react(handler: http.server.BaseHTTPRequestHandler, reaction: Any) -> None:
    if isinstance(reaction, Silent):
        reaction.until.wait(30)
    if isinstance(reaction, Silent | Cut):
        handler.close_connection = True
        return
    if isinstance(reaction, Streamed):
        _stream(handler, reaction)
        return
    content = reaction.value if isinstance(reaction.value, bytes) else json.dumps(reaction.value).encode()
    handler.send_response(reaction.code)
    for name, value in {"Content-Type": "application/json", **reaction.headers}.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def _stream(handler: http.server.BaseHTTPRequestHandler, reaction: Streamed) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.flush()
    for part in reaction.parts:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        handler.wfile.flush()
    if reaction.until is not None:
        reaction.until.wait(30)
    handler.close_connection = reaction.is_cut
    if not reaction.is_cut:
        handler.wfile.write(b"0\r\n\r\n")


def write_kubeconfig(path: Path, url: str, context: str = "fake") -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": "fake", "user": {"token": "secret-token"}}],
        "contexts": [{"name": context, "context": {"cluster": "fake", "user": "fake"}}],
        "current-context": context,
    }
    path.write_text(json.dumps(content))
    return path
