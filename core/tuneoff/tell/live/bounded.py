"""Read a request within a time and a size: a client that sends byte by byte holds nothing up for long."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable
from typing import Any


class TooLargeError(Exception):
    """A request has more bytes than are read."""


class BoundedReader(io.RawIOBase):
    """A connection's bytes, at most `most_bytes` of them and until `seconds` after it was made."""

    def __init__(
        self, connection: socket.socket, seconds: float, most_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection, self._clock = connection, clock
        self._ends, self._left = clock() + seconds, most_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there.

        Raises:
            TimeoutError: the time is over.
            TooLargeError: so many bytes were read.
        """
        seconds = self._ends - self._clock()
        if seconds <= 0:
            raise TimeoutError("the request took too long")
        if self._left <= 0:
            raise TooLargeError
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count
