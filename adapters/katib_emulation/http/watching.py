"""Watches: the changes of one collection as lines of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from katib_emulation.http.api import Query
from katib_emulation.http.paths import Target
from katib_emulation.http.queries import count
from katib_emulation.objects import Object
from katib_emulation.selectors import Selector
from katib_emulation.statuses import ApiError
from katib_emulation.storage.store import Store
from katib_emulation.storage.subscription import Change

DEFAULT_SECONDS = 1800.0

QUIET_SECONDS = 1.0
"""How often a watch without changes looks whether its client is still there."""


def watch(store: Store, target: Target, query: Query, selects: Selector) -> Iterator[bytes | None]:
    """Yield one line per change until `timeoutSeconds` are over or the server ends; None: nothing happened for a while.

    Without a resourceVersion (or with 0) every object comes as ADDED first. A version that is too old ends the stream with an
    ERROR line that carries the Status (code 410), as on a real cluster.

    Raises:
        ApiError: 400, the resourceVersion or the timeout is no number.
    """
    version = count(query, "resourceVersion") or 0
    seconds = count(query, "timeoutSeconds") or DEFAULT_SECONDS
    return _lines(store, target, selects, version, time.monotonic() + seconds)


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
