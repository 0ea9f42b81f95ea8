"""Follow the log of one container across disconnects, so that each line comes once.

The client's own `Watch` also gives lines of logs, but as text, without the last one that has no end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing
from tuneoff_adapters.kubernetes.resources import PODS
from tuneoff_adapters.kubernetes.stream import Stream
from tuneoff_adapters.kubernetes.transport import NoAnswer

if TYPE_CHECKING:
    from tuneoff_adapters.kubernetes.connection import Connection

_CHUNK_BYTES = 2**16
_LOOK_SECONDS = 0.05  # between two looks at `is_over`, which costs no request
_LONGEST_LINE = 2**24  # bytes: of a longer line the last so many are given
_LONGEST_WAIT = 30.0  # before a log is asked for again that ended although its container did not


class LogStream(Stream):
    """`for line in stream:` gives each line of the log (bytes, without its end) once, as it is written.

    The API has no offset into a log. So after a disconnect it is read from its beginning, and as many lines as were given are
    skipped; that is wrong only where the node has rotated the log away meanwhile (its first line is another one), which
    `was_rotated` tells: then everything that is left is given.

    A log ends when `is_over()` says that the container is known to have ended, and it was read to its end after that.
    `is_complete` tells so afterwards; False: the pod is gone, or `close()` was called. One that the server refuses is asked for
    again every 30 s while its container runs: a node that was lost may come back.

    Raises, from the loop:
        Unreachable: the server was away for the connection's `limits.api`.
        ApiError: the server refuses, and the container is known to have ended.
    """

    def __init__(self, connection: Connection, namespace: str, pod: str, container: str, is_over: Callable[[], bool]) -> None:
        super().__init__(connection, PODS.path(namespace, pod, "log"))
        self._container, self._is_over = container, is_over
        self.is_complete = False
        self.was_rotated = False
        self._given = 0  # lines
        self._first: bytes | None = None
        self._rest: list[bytes] = []  # after the last line's end

    def __iter__(self) -> Iterator[bytes]:
        settle = self._connection.limits.settle
        wait = settle
        while not self._closed.is_set():
            was_over, before = self._is_over(), self._given
            try:
                is_whole = yield from self._read(is_following=not was_over)
            except Missing:
                return
            except ApiError:
                if was_over:
                    raise
                self._await_end(_LONGEST_WAIT)
                continue
            if self._closed.is_set():
                return
            if is_whole and was_over:
                self.is_complete = True
                if rest := b"".join(self._rest):
                    yield rest
                return
            wait = settle if self._given > before else min(2 * wait, _LONGEST_WAIT)
            self._await_end(wait if is_whole else self._connection.limits.pause)

    def _read(self, is_following: bool) -> Generator[bytes, None, bool]:
        """Yield the lines that were not given yet, of one request; return whether it ended regularly."""
        limits = self._connection.limits
        query = [("container", self._container), *([("follow", "true")] if is_following else [])]
        response = self._connection.open_stream(self._path, query, limits.silence if is_following else limits.call)
        self._rest = []
        number = 0
        try:
            with self._reading(response):
                for chunk in response.stream(_CHUNK_BYTES):
                    first, *lines = chunk.split(b"\n")
                    self._rest.append(first)
                    if len(self._rest) > 2 * _LONGEST_LINE // _CHUNK_BYTES:
                        self._rest = [b"".join(self._rest)[-_LONGEST_LINE:]]
                    if not lines:
                        continue
                    lines.insert(0, b"".join(self._rest))
                    self._rest = [lines.pop()]
                    for line in lines:
                        if number == 0:
                            self._begin(line)
                        number += 1
                        if number > self._given:
                            self._given = number
                            yield line
            return True
        except NoAnswer:
            return False

    def _begin(self, first: bytes) -> None:
        """Find out by its first line whether this is the log that was read before."""
        if self._first is not None and first != self._first:
            self.was_rotated = True
            self._given = 0
        self._first = first

    def _await_end(self, seconds: float) -> None:
        """Wait until the container is known to have ended, but no longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._is_over() and time.monotonic() < deadline and not self._closed.is_set():
            self._closed.wait(_LOOK_SECONDS)
