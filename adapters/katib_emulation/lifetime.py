"""How the server's process ends: with its parent, on a signal, or because its folder failed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading


class Ending:
    """The moment at which the server has to end, and why.

    It comes through a pipe: a signal may be delivered to any thread, and would not wake the main one out of a lock.
    """

    def __init__(self) -> None:
        self.failure: str | None = None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def on_signals(self) -> None:
        """End on SIGTERM and SIGINT."""
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def with_parent(self, parent: int | None) -> None:
        """End when the process `parent` ends; None: when the one ends that started this one. It is a failure if there is none."""
        starter = os.getppid()
        try:
            descriptor = os.pidfd_open(starter if parent is None else parent)
        except OSError as error:
            self.fail(f"process {parent or starter} of --parent cannot be watched: {error.strerror}")
            return
        threading.Thread(target=self._watch, args=(descriptor,), name="parent", daemon=True).start()
        if parent is None and os.getppid() != starter:
            self._end()

    def _watch(self, descriptor: int) -> None:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll()
        self._end()

    def fail(self, reason: object) -> None:
        """End with a failure; the first one is kept."""
        if self.failure is None:
            self.failure = str(reason)
        self._end()

    def wait(self) -> None:
        """Wait for it."""
        os.read(self._reader, 1)

    def _end(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it was told often enough
            os.write(self._writer, b"e")
