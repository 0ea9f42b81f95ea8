"""The API server on loopback: verbs on resources, who may use them, and their HTTP, with streams of watches and logs.

The only user may do everything, except what `--deny VERB:RESOURCE` takes away, so that the lack of rights can be tried.
"""

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
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from katib_emulation.admission import admit_experiment
from katib_emulation.errors import StatusError, bad_request, forbidden, internal, invalid, not_found
from katib_emulation.objects import (
    EXPERIMENTS,
    KATIB_GROUP,
    KATIB_KINDS,
    KINDS,
    NAMESPACES,
    PODS,
    Kind,
    Object,
    copied,
    is_deleting,
    key_of,
)
from katib_emulation.store import Propagation, Store, Subscription, WatchEvent, settle_namespace, terminating

Query = Mapping[str, str]
Selector = Callable[[Object], bool]
Answer = tuple[int, dict[str, Any] | bytes | Iterator[bytes]]
"""Code, and an object, a text, or a stream: an empty piece asks whether the client is still there."""

VERSION = "v1.36.0-emulated"
QUIET_SECONDS = 1.0  # how often a watch without changes looks whether its client is still there
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

_UNKNOWN = dict.fromkeys(("gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler"), "")
_VERSION = {"major": "1", "minor": "36", "gitVersion": VERSION, "platform": "emulated", **_UNKNOWN}
_WATCH_SECONDS = 1800.0
_POLICIES: Mapping[str | None, Propagation] = {None: "Background", "Background": "Background", "Foreground": "Foreground"}
HOST = "127.0.0.1"


class PodLogs(Protocol):
    """Who has the containers' output: the node. Both refuse (400, 404) what is not a container or waits to start."""

    def read_log(self, namespace: str, pod: str, container: str | None) -> bytes:
        """Return what the container has written so far; empty for a pod without a node."""
        ...

    def follow_log(self, namespace: str, pod: str, container: str | None) -> Iterator[bytes]:
        """Return the output from its beginning until the container has ended; empty pieces while nothing is written."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about: a collection (`name` is empty), one object, or a pod's log."""

    kind: Kind
    namespace: str | None  # None: all namespaces, or a cluster-wide kind
    name: str
    is_log: bool


class Api:
    """Serves requests on a store's objects and the logs of pods.

    Args:
        denials: what the user may not do, each VERB:RESOURCE, with "/SUBRESOURCE" where there is one, as in get:pods/log.
        has_katib: else Katib's kinds are unknown.
    """

    def __init__(self, store: Store, logs: PodLogs, denials: Collection[str] = (), has_katib: bool = True) -> None:
        self._store, self._logs, self._denials = store, logs, frozenset(denials)
        self._kinds = {(kind.group, kind.version, kind.plural): kind for kind in KINDS if has_katib or kind not in KATIB_KINDS}

    def answer(self, verb: str, path: str, query: Query, body: Any) -> Answer:
        """Answer one request.

        Raises:
            StatusError: it is refused.
        """
        if verb == "GET" and (discovery := self._discover(path.strip("/"))) is not None:
            return 200, discovery
        if verb == "POST" and path == REVIEWS:
            attributes = body["spec"]["resourceAttributes"]
            resource = "/".join(filter(None, (attributes["resource"], attributes.get("subresource"))))
            allowed = f"{attributes['verb']}:{resource}" not in self._denials
            head = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
            return 201, {**head, "spec": body["spec"], "status": {"allowed": allowed}}
        target = self._target(path)
        name, namespace = target.name, target.namespace
        if verb == "GET" and not name:
            return 200, self._watch(target, query) if _is_true(query.get("watch")) else self._list(target, query)
        if verb == "GET":
            kind = self._allowed("get", target)
            if not target.is_log:
                return 200, self._store.get(kind, name, namespace)
            read = self._logs.follow_log if _is_true(query.get("follow")) else self._logs.read_log
            return 200, read(namespace or "", name, query.get("container") or None)
        if verb == "POST" and not name and (namespace is not None or not target.kind.namespaced):
            return 201, self._create(target, body)
        if verb == "PATCH" and name and not target.is_log:
            return 200, self._patch(target, body)
        if verb == "DELETE" and name and not target.is_log:
            return 200, self._delete(target, (body or {}).get("propagationPolicy") or query.get("propagationPolicy"))
        raise StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _target(self, path: str) -> Target:
        """Parse `/api/v1/...` or `/apis/GROUP/VERSION/...`."""
        root, *parts = [unquote(part) for part in path.strip("/").split("/")]
        if root == "api":
            parts = ["", *parts]
        rest, namespace = parts[2:], None
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.get((parts[0], parts[1], rest[0])) if rest and root in ("api", "apis") else None
        if kind is None or "" in rest or (namespace is not None) > kind.namespaced:
            raise _unknown_path()
        is_log = kind is PODS and rest[2:] == ["log"]
        if len(rest) > 2 + is_log or (kind.namespaced and namespace is None and len(rest) > 1):
            raise _unknown_path()
        return Target(kind, namespace, rest[1] if len(rest) > 1 else "", is_log)

    def _discover(self, path: str) -> dict[str, Any] | None:
        """Return what clients ask of the server itself: its version, a group, the resources of a group's version."""
        if path == "version":
            return _VERSION
        kinds = [kind for kind in self._kinds.values() if path in (f"apis/{kind.group}", f"apis/{kind.api_version}")]
        if not kinds:
            return None
        if path.endswith(kinds[0].group):
            version = {"groupVersion": kinds[0].api_version, "version": kinds[0].version}
            return {"kind": "APIGroup", "name": kinds[0].group, "versions": [version], "preferredVersion": version}
        named = [{"name": kind.plural, "namespaced": kind.namespaced, "kind": kind.kind} for kind in kinds]
        return {"kind": "APIResourceList", "groupVersion": kinds[0].api_version, "resources": named}

    def _allowed(self, verb: str, target: Target) -> Kind:
        """Return the kind that a request is about.

        Raises:
            StatusError: 403.
        """
        kind = target.kind
        resource = f"{kind.plural}/log" if target.is_log else kind.plural
        if f"{verb}:{resource}" in self._denials:
            where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
            why = f'User "emulated" cannot {verb} resource "{resource}" in API group "{kind.group}"{where}'
            raise forbidden(kind, target.name, why)
        return kind

    def _list(self, target: Target, query: Query) -> Object:
        kind, selects = self._allowed("list", target), _selector(query)
        version, objects = self._store.view(kind, target.namespace)
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": {"resourceVersion": str(version)}}
        return {**head, "items": [obj for obj in objects if selects(obj)]}

    def _create(self, target: Target, body: Any) -> Object:
        kind = self._allowed("create", target)
        _check_type(kind, body)
        settle_namespace(kind, body, target.namespace)
        body.pop("status", None)  # a subresource, which clients cannot write here
        if kind is EXPERIMENTS and body["metadata"].get("name"):
            namespace = self._store.get(NAMESPACES, body["metadata"]["namespace"])
            if is_deleting(namespace):
                raise terminating(key_of(kind, body))
            body = admit_experiment(body, None, namespace)
        return self._store.create(kind, body, target.namespace)

    def _patch(self, target: Target, patch: Any) -> Object:
        """Merge a patch into an object; its status stays as it is."""
        kind, name = self._allowed("patch", target), target.name

        def change(current: Object) -> None:
            before = copied(current)
            wanted = _merged(before, patch)
            _check_type(kind, wanted)
            if wanted["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
                why = "the object has been modified; please apply your changes to the latest version and try again"
                text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
                raise StatusError(409, "Conflict", text)
            if "status" in before:
                wanted["status"] = before["status"]
            if kind is EXPERIMENTS and wanted.get("spec") != before.get("spec"):
                wanted = admit_experiment(wanted, before, self._store.get(NAMESPACES, target.namespace or ""))
            current.clear()
            current.update(wanted)

        changed = self._store.update(kind, name, target.namespace, change)
        if changed is None:
            raise not_found(kind, name)
        return changed

    def _delete(self, target: Target, policy: str | None) -> Object:
        kind = self._allowed("delete", target)
        if policy not in _POLICIES:
            why = f'Unsupported value: "{policy}": the emulation has "Background" and "Foreground"'
            raise invalid(kind, target.name, [f"propagationPolicy: {why}"])
        last = self._store.delete(kind, target.name, target.namespace, _POLICIES[policy])
        if is_deleting(last) or kind in (NAMESPACES, PODS):
            return last
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def _watch(self, target: Target, query: Query) -> Iterator[bytes]:
        """Return a line per change until `timeoutSeconds` are over or the server ends; an empty one: nothing happened.

        Without a resourceVersion (or with 0) every object comes as ADDED first. A version that is too old ends the stream with
        an ERROR line that carries the Status (code 410), as on a real cluster.
        """
        self._allowed("watch", target)
        try:
            version, seconds = int(query.get("resourceVersion") or 0), float(query.get("timeoutSeconds") or _WATCH_SECONDS)
        except ValueError as error:
            raise bad_request(f"resourceVersion and timeoutSeconds must be numbers: {error}") from error
        selects = _selector(query)
        try:
            changes = self._store.subscribe(target.kind, since=version or None, initial=not version)
        except StatusError as error:
            return iter([_line("ERROR", error.body())])
        return _lines(changes, target.namespace, selects, time.monotonic() + seconds)


def _unknown_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def _lines(changes: Subscription, namespace: str | None, selects: Selector, deadline: float) -> Iterator[bytes]:
    try:
        while (remaining := deadline - time.monotonic()) > 0 and not changes.is_closed:
            change = changes.next(min(remaining, QUIET_SECONDS))
            if change is None or namespace in (None, change.object["metadata"].get("namespace")):
                yield b"" if change is None else _seen(change, selects)
    finally:
        changes.close()


def _seen(change: WatchEvent, selects: Selector) -> bytes:
    """Return the change as the watcher sees it: an object that leaves its selection is deleted for it; empty: nothing."""
    before = change.previous is not None and selects(change.previous)
    if change.type != "DELETED" and selects(change.object):
        return _line("MODIFIED" if before else "ADDED", change.object)
    return _line("DELETED", change.object) if before else b""


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
                raise bad_request(f"unable to parse requirement: {text}")
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
    if not isinstance(obj, dict) or not isinstance(obj.setdefault("metadata", {}), dict):
        raise bad_request(f"the body must be a {kind.kind} object in JSON")
    for name, value, wanted in (("Kind", obj.get("kind"), kind.kind), ("apiVersion", obj.get("apiVersion"), kind.api_version)):
        if not value and kind.group == KATIB_GROUP:
            raise bad_request(f"Object '{name}' is missing in the body")
        if value and value != wanted:
            raise bad_request(f"the {name} in the data ({value}) does not match the expected {name} ({wanted})")


class Server(http.server.ThreadingHTTPServer):
    """Serves the API on a free port to those who know the token (None: to everybody on this machine)."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, api: Api, token: str | None = None, access_log: Path | None = None) -> None:
        self.api, self.token = api, token
        self._access_log = access_log.open("a", buffering=1) if access_log else None
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

    def requested(self, verb: str, path: str, code: int, seconds: float) -> None:
        """Write a line of the access log: Unix time, verb, path, code, milliseconds until the answer began."""
        if self._access_log:
            self._access_log.write(f"{time.time():.6f}\t{verb}\t{path}\t{code}\t{seconds * 1e3:.2f}\n")


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
            answer = 500, internal(repr(error)).body()
        code, content = answer
        self.server.requested(self.command, self.path, code, time.perf_counter() - started)
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
            raise bad_request(f"the object provided is unrecognized: it is no JSON: {error}") from error
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
