"""Processors for a run's slots alone: no two runs on this machine get the same ones."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Collection
from types import TracebackType

# A name in the kernel's own ("abstract") namespace of sockets: one holder, no file, and free as soon as the holder has died.
_NAME = "\0tuneoff-processor-{}"


def usable_processors() -> list[int]:
    """Return the processors that this process may run on, in order; empty where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


class ReservedProcessors:
    """Holds processors against other runs on this machine until it is closed, or this process ends."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, count: int, among: Collection[int]) -> tuple[int, ...]:
        """Reserve `count` processors and return them in order, or reserve none and return nothing: too few are free."""
        taken: list[int] = []
        for processor in sorted(among):
            if len(taken) == count:
                break
            if self._reserve(processor):
                taken.append(processor)
        if len(taken) < count:
            self.close()
            return ()
        return tuple(taken)

    def close(self) -> None:
        """Free what is held. Idempotent."""
        for holder in self._held:
            holder.close()
        self._held.clear()

    def __enter__(self) -> ReservedProcessors:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _reserve(self, processor: int) -> bool:
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(_NAME.format(processor))
        except OSError as error:
            holder.close()
            if error.errno == errno.EADDRINUSE:
                return False
            raise
        self._held.append(holder)
        return True
