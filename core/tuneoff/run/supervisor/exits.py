"""When processes were gone: the kernel tells at once, by pidfd, of children and others alike."""

from __future__ import annotations

import contextlib
import os
import select
import threading

from tuneoff.base import clock, processes

Identity = tuple[int, int]  # pid, when the kernel started it (ns): a pid alone may be used again


class ExitClock:
    """Notes when each watched process ended, to some milliseconds (a thread waits; it starts with the first process).

    A process that had ended before it was watched gets no reading: a guess is none.
    """

    def __init__(self) -> None:
        self._poll: select.epoll | None = None
        self._end = -1
        self._thread: threading.Thread | None = None
        self._watched: dict[int, Identity] = {}  # by pidfd
        self._known: set[Identity] = set()
        self._gone: dict[Identity, int] = {}

    def watch(self, pid: int, started_ns: int) -> bool:
        """Watch a process from now on; tell whether it is watched or its end is known. Cheap where it is watched already."""
        identity = pid, started_ns
        if identity in self._known:
            return True
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:  # it is gone, or this kernel has no such call
            return False
        if not processes.is_alive(pid, started_ns):
            os.close(descriptor)
            return False
        self._known.add(identity)
        self._watched[descriptor] = identity
        if self._poll is None:
            self._poll, self._end = select.epoll(), os.eventfd(0)
            self._poll.register(self._end, select.EPOLLIN)
            self._thread = threading.Thread(target=self._wait, args=(self._poll,), name="exits", daemon=True)
            self._thread.start()
        self._poll.register(descriptor, select.EPOLLIN)
        return True

    def take(self, pid: int, started_ns: int) -> int | None:
        """Return when a watched process was gone (monotonic, nanoseconds) and forget it; None while it lives."""
        gone = self._gone.pop((pid, started_ns), None)
        if gone is not None:
            self._known.discard((pid, started_ns))
        return gone

    def close(self) -> None:
        """Stop watching; the readings stay."""
        if self._poll is None or self._thread is None:
            return
        os.eventfd_write(self._end, 1)
        self._thread.join()
        self._poll.close()
        for descriptor in (self._end, *self._watched):
            os.close(descriptor)
        self._watched.clear()
        self._poll = None

    def _wait(self, poll: select.epoll) -> None:
        while True:
            ready = poll.poll()
            now = clock.monotonic_ns()
            for descriptor, _ in ready:
                if descriptor == self._end:
                    continue
                self._gone[self._watched.pop(descriptor)] = now
                with contextlib.suppress(OSError):
                    poll.unregister(descriptor)
                os.close(descriptor)
            if any(descriptor == self._end for descriptor, _ in ready):
                return
