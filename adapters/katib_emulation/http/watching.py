"""Selectors, and watches: the changes of one collection as lines of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from katib_emulation.http.paths import Target
from katib_emulation.objects import Object
from katib_emulation.statuses import ApiError, bad_request
from katib_emulation.storage.store import Store
from katib_emulation.storage.table import Change

Query = Mapping[str, str]
Selector = Callable[[Object], bool]

DEFAULT_SECONDS = 1800.0

QUIET_SECONDS = 1.0
"""How often a watch without changes looks whether its client is still there."""


def is_true(text: str | None) -> bool:
    """Whether a parameter is set, in any of the ways that Go understands (the Python client sends `True`)."""
    return text in ("1", "t", "T", "true", "True", "TRUE")


def selector(query: Query) -> Selector:
    """Return the test of `labelSelector` and `fieldSelector`: `a=b`, joined by commas.

    Raises:
        ApiError: 400, it is another form.
    """
    labels = [(("metadata", "labels", name), value) for name, value in _pairs(query.get("labelSelector"))]
    fields = [(tuple(name.split(".")), value) for name, value in _pairs(query.get("fieldSelector"))]
    return lambda obj: all(_at(obj, path) == value for path, value in (*labels, *fields))


def _pairs(text: str | None) -> Iterator[tuple[str, str]]:
    for part in filter(None, (text or "").split(",")):
        name, equals, value = part.replace("==", "=").partition("=")
        if not equals or name.endswith("!"):
            raise bad_request(f"unable to parse requirement: found '{part}'; the emulation has selectors of the form a=b")
        yield name.strip(), value.strip()


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = (obj or {}).get(step)
    return obj


def watch(store: Store, target: Target, query: Query) -> Iterator[bytes | None]:
    """Yield one line per change until `timeoutSeconds` are over or the server ends; None: nothing happened for a while.

    Without a resourceVersion (or with 0) every object comes as ADDED first. A version that is too old ends the stream with an
    ERROR line that carries the Status (code 410), as on a real cluster.

    Raises:
        ApiError: 400, the resourceVersion, the timeout or a selector cannot be read.
    """
    try:
        version, seconds = int(query.get("resourceVersion") or 0), float(query.get("timeoutSeconds") or DEFAULT_SECONDS)
    except ValueError as error:
        raise bad_request(f"resourceVersion and timeoutSeconds must be numbers: {error}") from error
    return _lines(store, target, selector(query), version, time.monotonic() + seconds)


def _lines(store: Store, target: Target, selects: Selector, version: int, deadline: float) -> Iterator[bytes | None]:
    try:
        changes = store.subscribe(target.kind, since=version or None, initial=not version)
    except ApiError as error:
        yield _line("ERROR", error.body())
        return
    try:
        while (left := deadline - time.monotonic()) > 0 and not changes.is_closed:
            change = changes.next(min(left, QUIET_SECONDS))
            if change is None:
                yield None
            elif target.namespace in (None, change.object["metadata"].get("namespace")):
                line = _seen(change, selects)
                if line is not None:
                    yield line
    finally:
        changes.close()


def _seen(change: Change, selects: Selector) -> bytes | None:
    """Return the change as the watcher sees it: an object that leaves its selection is deleted for it."""
    before = change.previous is not None and selects(change.previous)
    after = change.type != "DELETED" and selects(change.object)
    if after:
        return _line("MODIFIED" if before else "ADDED", change.object)
    return _line("DELETED", change.object) if before else None


def _line(type_: str, obj: Object) -> bytes:
    return json.dumps({"type": type_, "object": obj}, separators=(",", ":")).encode() + b"\n"
