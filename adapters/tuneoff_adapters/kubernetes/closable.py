"""What watches and logs share: a stream that any thread may end while another one reads it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuneoff_adapters.kubernetes.transport import Body

if TYPE_CHECKING:
    from tuneoff_adapters.kubernetes.connection import Connection


class Closable:
    """Reads one answer after the other; `close()` ends the one that is read now, and lets no other begin."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._body: Body | None = None

    def close(self) -> None:
        """End the loop, wherever it is."""
        self._closed.set()
        with self._lock:
            if self._body is not None:
                self._body.shut()

    @property
    def _is_closed(self) -> bool:
        return self._closed.is_set() or self._connection.is_closed

    @contextlib.contextmanager
    def _reading(self, body: Body) -> Iterator[None]:
        """Let `close()` reach the answer while it is read; close it afterwards."""
        with self._lock:
            self._body = body
            if self._is_closed:
                body.shut()
        try:
            yield
        finally:
            with self._lock:
                self._body = None
            body.close()
