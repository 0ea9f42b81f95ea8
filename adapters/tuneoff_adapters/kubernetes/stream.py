"""What watches and logs share: a stream that any thread may end while another one reads it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tuneoff_adapters.kubernetes.transport import mapped

if TYPE_CHECKING:
    from tuneoff_adapters.kubernetes.connection import Connection


class Stream:
    """Reads one answer after the other; `close()` ends the one that is read now, and lets no other begin."""

    def __init__(self, connection: Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._response: Any = None

    def close(self) -> None:
        """End the loop, wherever it is."""
        self._closed.set()
        with self._lock:
            self._shut()

    @contextlib.contextmanager
    def _reading(self, response: Any) -> Iterator[None]:
        """Let `close()` reach the answer while it is read; close it afterwards.

        Raises:
            ApiError, NoAnswer: it told of an error, or was cut or silent for too long.
        """
        with self._lock:
            self._response = response
            if self._closed.is_set():
                self._shut()
        try:
            with mapped(f"GET {self._path}"):
                yield
        finally:
            with self._lock:
                self._response = None
            response.close()

    def _shut(self) -> None:
        """Wake the thread that reads."""
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):  # there is none, or it ended meanwhile
            self._response.shutdown()
