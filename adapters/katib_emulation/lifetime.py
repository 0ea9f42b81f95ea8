"""How the server's process ends: with its parent, on a signal, or because its folder failed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import threading

_PR_SET_PDEATHSIG = 1

_LONGEST_SECONDS = 1.7
"""The ending itself may take so long; the guardian kills what the pods' processes leave then."""


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
        """End when the process `parent` ends; None: when the one ends that started this one. It is a failure if there is none.

        A descriptor of the process is watched. Where the kernel gives none, it sends a signal, which has two flaws: it comes only
        for the process that started this one, and already when the *thread* ends that did so.
        """
        starter = os.getppid()
        watched = starter if parent is None else parent
        try:
            descriptor = os.pidfd_open(watched)
        except OSError as error:  # it is gone, or this kernel or sandbox has no such call
            if watched != starter:
                self.fail(
                    f"process {watched} of --parent cannot be watched: {error.strerror}; "
                    "give the number of a process that runs, or leave the option out"
                )
                return
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        else:
            threading.Thread(target=self._watch, args=(descriptor,), name="parent", daemon=True).start()
        if watched == starter and os.getppid() != starter:
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
        """Wait for it. From then on the process has less than 2 s."""
        os.read(self._reader, 1)
        timer = threading.Timer(_LONGEST_SECONDS, _give_up)
        timer.daemon = True
        timer.start()

    def _end(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it was told often enough
            os.write(self._writer, b"e")


def _give_up() -> None:
    """End the process at once, whatever its threads do."""
    os.write(2, f"error: the emulated cluster did not end in {_LONGEST_SECONDS:g} s; its process is ended\n".encode())
    os._exit(1)
