"""The API server on loopback: verbs on resources, and their HTTP, with streams of watches and logs."""

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
from collections.abc import Callable, Generator, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from katib_emulation.admission import admit_experiment
from katib_emulation.objects import (
    EXPERIMENTS,
    KATIB_GROUP,
    KINDS,
    NAMESPACES,
    PODS,
    Kind,
    Object,
    StatusError,
    Store,
    is_deleting,
)

Query = Mapping[str, str]
Selector = Callable[[Object], bool]
Answer = tuple[int, dict[str, Any] | bytes | Iterator[bytes]]
"""Code, and an object, a text, or a stream: an empty piece asks whether the client is still there."""

ReadLog = Callable[[str, str, str | None, bool], bytes | Iterator[bytes]]
"""Gives what a container has written, of (namespace, pod, container, whether it is followed until its end)."""

VERSION = "v1.36.0-emulated"
QUIET_SECONDS = 1.0  # how often a watch without changes looks whether its client is still there
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

_VERSION = {"major": "1", "minor": "36", "gitVersion": VERSION}
_WATCH_SECONDS = 1800.0
HOST = "127.0.0.1"


class Api:
    """Serves requests on a store's objects and the logs of pods; `has_katib`: else Katib's kinds are unknown."""

    def __init__(self, store: Store, read_log: ReadLog, has_katib: bool = True) -> None:
        self._store, self._read_log = store, read_log
        self._kinds = {(kind.group, kind.version, kind.plural): kind for kind in KINDS if has_katib or kind.group != KATIB_GROUP}

    def answer(self, verb: str, path: str, query: Query, body: Any) -> Answer:
        """Answer one request.

        Raises:
            StatusError: it is refused.
        """
        if verb == "GET" and path.rstrip("/") == "/version":
            return 200, _VERSION
        if verb == "GET" and (kinds := [kind for kind in self._kinds.values() if kind.group == KATIB_GROUP]):  # is Katib there?
            group, version = KATIB_GROUP, kinds[0].api_version
            if path == f"/apis/{group}":
                versions = [{"groupVersion": version, "version": kinds[0].version}]
                return 200, {"kind": "APIGroup", "name": group, "versions": versions}
            if path == f"/apis/{version}":
                named = [{"name": kind.plural, "namespaced": True, "kind": kind.kind} for kind in kinds]
                return 200, {"kind": "APIResourceList", "groupVersion": version, "resources": named}
        if verb == "POST" and path == REVIEWS:  # the only user may do everything
            head = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
            return 201, {**head, "spec": body["spec"], "status": {"allowed": True}}
        kind, namespace, name, is_log = self._target(path)
        read = "get" if name else "watch" if _is_true(query.get("watch")) else "list"
        by_verb = {"GET": read, "PATCH": "patch", "DELETE": "delete"} if name else {"GET": read, "POST": "create"}
        action = by_verb.get(verb)
        if action is None or (is_log and action != "get") or (action == "create" and namespace is None and kind.namespaced):
            raise StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
        match action:
            case "get" if is_log:
                return 200, self._read_log(namespace or "", name, query.get("container") or None, _is_true(query.get("follow")))
            case "get":
                return 200, self._store.get(kind, name, namespace)
            case "list":
                selects, (moment, objects) = _selector(query), self._store.view(kind, namespace)
                metadata, items = {"resourceVersion": str(moment)}, [obj for obj in objects if selects(obj)]
                return 200, {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}
            case "watch":
                return 200, self._watch(kind, namespace, query)
            case "create":
                _check_type(kind, body)
                body.pop("status", None)  # a subresource, which clients cannot write here
                admit = (lambda obj, home: admit_experiment(obj, None, home)) if kind is EXPERIMENTS else None
                return 201, self._store.create(kind, body, namespace, admit)
            case "patch":
                return 200, self._patch(kind, name, namespace, body)
        policy = (body or {}).get("propagationPolicy")
        last = self._store.delete(kind, name, namespace, "Foreground" if policy == "Foreground" else "Background")
        if is_deleting(last) or kind in (NAMESPACES, PODS):
            return 200, last
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def _target(self, path: str) -> tuple[Kind, str | None, str, bool]:
        """Return what `/api/v1/...` or `/apis/GROUP/VERSION/...` is about: kind, namespace, name, whether it is a pod's log.

        The namespace is None for all of them and for a cluster-wide kind, the name of a collection is empty.
        """
        root, *parts = [unquote(part) for part in path.strip("/").split("/")]
        if root == "api":
            parts = ["", *parts]
        rest, namespace = parts[2:], None
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.get((parts[0], parts[1], rest[0])) if rest and root in ("api", "apis") else None
        is_log = kind is PODS and rest[2:] == ["log"]
        is_odd = kind is None or "" in rest or (namespace is not None) > kind.namespaced or len(rest) > 2 + is_log
        if kind is None or is_odd or (kind.namespaced and namespace is None and len(rest) > 1):
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        return kind, namespace, rest[1] if len(rest) > 1 else "", is_log

    def _patch(self, kind: Kind, name: str, namespace: str | None, patch: Any) -> Object:
        """Merge a patch into an object; its status stays as it is."""

        def change(current: Object) -> None:
            before = dict(current)
            wanted = _merged(before, patch)
            _check_type(kind, wanted)
            if wanted["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
                why = "the object has been modified; please apply your changes to the latest version and try again"
                raise StatusError(409, "Conflict", f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}')
            if "status" in before:
                wanted["status"] = before["status"]
            if kind is EXPERIMENTS and wanted.get("spec") != before.get("spec"):
                wanted = admit_experiment(wanted, before, self._store.get(NAMESPACES, namespace or ""))
            current.clear()
            current.update(wanted)

        changed = self._store.update(kind, name, namespace, change)
        if changed is None:
            raise StatusError.not_found(kind, name)
        return changed

    def _watch(self, kind: Kind, namespace: str | None, query: Query) -> Iterator[bytes]:
        """Return a line per change until `timeoutSeconds` are over or the server ends; an empty one: nothing happened.

        Without a resourceVersion (or with 0) every object comes as ADDED first. A version that is too old ends the stream with
        an ERROR line that carries the Status (code 410), as on a real cluster.
        """
        version, seconds = int(query.get("resourceVersion") or 0), float(query.get("timeoutSeconds") or _WATCH_SECONDS)
        selects = _selector(query)
        try:
            changes = self._store.subscribe(kind, since=version or None, initial=not version)
        except StatusError as error:
            return iter([_line("ERROR", error.body())])

        def lines(deadline: float) -> Iterator[bytes]:
            with contextlib.closing(changes):
                while (remaining := deadline - time.monotonic()) > 0 and not changes.is_closed:
                    change = changes.next(min(remaining, QUIET_SECONDS))
                    if change is None:
                        yield b""
                    elif namespace in (None, change.object["metadata"].get("namespace")) and selects(change.object):
                        yield _line(change.type, change.object)

        return lines(time.monotonic() + seconds)


def _line(type_: str, obj: Object) -> bytes:
    return json.dumps({"type": type_, "object": obj}, separators=(",", ":")).encode() + b"\n"


def _is_true(text: str | None) -> bool:
    return text in ("1", "true", "True")  # the Python client sends `True`


def _selector(query: Query) -> Selector:
    """Return the test of `labelSelector` and `fieldSelector`: `a=b`, joined by commas.

    Raises:
        StatusError: 400, it is another form.
    """
    wanted = []
    for parameter in ("labelSelector", "fieldSelector"):
        for part in filter(None, query.get(parameter, "").split(",")):
            name, equals, value = part.replace("==", "=").partition("=")
            if not equals or name.endswith("!"):
                text = f"found '{part}'; the emulation has selectors of the form a=b"
                raise StatusError.bad_request(f"unable to parse requirement: {text}")
            path = ("metadata", "labels", name) if parameter == "labelSelector" else tuple(name.split("."))
            wanted.append((path, value))

    def at(obj: Any, path: tuple[str, ...]) -> Any:
        for step in path:
            obj = (obj or {}).get(step)
        return obj

    return lambda obj: all(at(obj, path) == value for path, value in wanted)


def _merged(target: Any, patch: Any) -> Any:
    """Return the target with a JSON merge patch (RFC 7386) applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _check_type(kind: Kind, obj: Any) -> None:
    """Check that a body is an object of this kind; what built-in kinds leave out is filled in later.

    Raises:
        StatusError: 400.
    """
    obj.setdefault("metadata", {})
    for name, value, wanted in (("Kind", obj.get("kind"), kind.kind), ("apiVersion", obj.get("apiVersion"), kind.api_version)):
        if not value and kind.group == KATIB_GROUP:
            raise StatusError.bad_request(f"Object '{name}' is missing in the body")
        if value and value != wanted:
            raise StatusError.bad_request(f"the {name} in the data ({value}) does not match the expected {name} ({wanted})")


class Server(http.server.ThreadingHTTPServer):
    """Serves the API on a free port to those who know the token (None: to everybody on this machine)."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, api: Api, token: str | None = None, access_log: Path | None = None) -> None:
        self.api, self.token = api, token
        self.access_log = access_log.open("a", buffering=1) if access_log else None
        super().__init__((HOST, 0), Exchange)

    @property
    def url(self) -> str:
        """Where the server is reached."""
        return f"http://{HOST}:{self.server_address[1]}"

    def start(self) -> None:
        """Serve in an own thread."""
        threading.Thread(target=self.serve_forever, args=(0.05,), name="http", daemon=True).start()

    def stop(self) -> None:
        """Take no more connections. Streams end when the store is closed, and all others with the process."""
        self.shutdown()
        self.server_close()


class Exchange(http.server.BaseHTTPRequestHandler):
    """Serves one connection until the client closes it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def handle(self) -> None:
        """Serve requests until the client goes."""
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError):  # the client closed the connection
            super().handle()

    def finish(self) -> None:
        """End; the client may have closed the connection in the middle of an answer."""
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Write no access log to stderr."""

    def do_GET(self) -> None:
        """Serve any request; named by the base class after its verb."""
        started = time.perf_counter()
        answer: Answer
        try:
            answer = self._answer()
        except StatusError as error:
            answer = error.code, error.body()
        except ConnectionError:
            raise
        except Exception as error:  # a defect of the emulation: the client is told, the server lives on
            traceback.print_exc(file=sys.stderr)
            answer = 500, StatusError(500, "InternalError", f"Internal error occurred: {error!r}").body()
        code, content = answer
        if (log := self.server.access_log) is not None:  # Unix time, verb, path, code, milliseconds until the answer began
            log.write(f"{time.time():.6f}\t{self.command}\t{self.path}\t{code}\t{(time.perf_counter() - started) * 1e3:.2f}\n")
        if isinstance(content, dict):
            self._write(code, "application/json", json.dumps(content, separators=(",", ":")).encode() + b"\n")
        elif isinstance(content, bytes):
            self._write(code, "text/plain", content)
        else:
            self._stream(content)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 (the base class wants these names)

    def _answer(self) -> Answer:
        token, authorization = self.server.token, self.headers.get("Authorization") or ""
        if token is not None and not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            self.close_connection = True  # nothing more is read of it
            raise StatusError(401, "Unauthorized", "Unauthorized")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        try:
            parsed = json.loads(body) if body.strip() else None
        except ValueError as error:
            raise StatusError.bad_request(f"the object provided is unrecognized: it is no JSON: {error}") from error
        return self.server.api.answer(self.command, url.path, dict(parse_qsl(url.query, keep_blank_values=True)), parsed)

    def _write(self, code: int, content_type: str, content: bytes | None) -> None:
        """Send an answer at once; None: the head of a stream."""
        length = "Transfer-Encoding: chunked" if content is None else f"Content-Length: {len(content)}"
        lines = [f"HTTP/1.1 {code} {HTTPStatus(code).phrase}", f"Content-Type: {content_type}", length]
        if self.close_connection:
            lines.append("Connection: close")
        self.connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (content or b""))

    def _stream(self, pieces: Iterator[bytes]) -> None:
        self.close_connection = True
        self._write(200, "text/plain" if urlsplit(self.path).path.endswith("/log") else "application/json", None)
        try:
            for piece in pieces:
                if piece:
                    self.connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                elif select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                    return  # the client is gone
            self.connection.sendall(b"0\r\n\r\n")
        finally:
            if isinstance(pieces, Generator):
                pieces.close()
