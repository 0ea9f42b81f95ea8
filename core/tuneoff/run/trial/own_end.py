"""A training that ends its own process: where it does so is noted before it happens.

A signal does not say who sent it, and some frameworks do not even say how a process ended. So Python's own ways to end the
process are noted; what C code does, or another process, is told by the exit code alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tuneoff.base.tracebacks import calling_line

Note = Callable[[str], None]  # is told how the process ends, and where

_SPARED = (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)  # without a handler they do nothing ...
_STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)  # ... or stop it: its silence ends the trial


class OwnEnd:
    """While `noted`, the functions of `os` and `signal` that end this process call a note first; in its children they do not."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._note: Note | None = None
        self._ways = [
            (module, name, self._noting(getattr(module, name), way))
            for module, name, way in (
                (os, "_exit", lambda status: f"exit code {status}"),
                (os, "abort", lambda: signal.SIGABRT.name),
                (os, "kill", lambda pid, number: _fatal(number) if pid in (self._pid, 0, -1, -os.getpgrp()) else None),
                (os, "killpg", lambda group, number: _fatal(number) if group in (0, os.getpgrp()) else None),
                (signal, "raise_signal", lambda number: _fatal(number)),
                (signal, "pthread_kill", lambda thread, number: _fatal(number)),
            )
        ]

    @contextlib.contextmanager
    def noted(self, note: Note | None) -> Iterator[None]:
        """Have the functions in place in this block; without a note they do what they always do."""
        before = [getattr(module, name) for module, name, _ in self._ways]
        for module, name, noting in self._ways:
            setattr(module, name, noting)
        self._note = note
        try:
            yield
        finally:
            self._note = None
            for (module, name, _), earlier in zip(self._ways, before, strict=True):
                setattr(module, name, earlier)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Note nothing in this block: a framework may end its process."""
        note, self._note = self._note, None
        try:
            yield
        finally:
            self._note = note

    def _noting(self, end: Callable[..., Any], way: Callable[..., str | None]) -> Callable[..., Any]:
        @functools.wraps(end)
        def noting(*arguments: Any, **named: Any) -> Any:
            if self._note is not None and os.getpid() == self._pid:
                with contextlib.suppress(Exception):  # wrong arguments are the function's to refuse; a full disk ends nothing
                    if (text := way(*arguments, **named)) is not None:
                        self._note(f"its own code ended its process: {text}{calling_line()}")
            return end(*arguments, **named)

        return noting


def _fatal(number: int) -> str | None:
    """Return the name of a signal that ends this process, or None."""
    sent = signal.Signals(number)
    if sent in _SPARED or sent in _STOPPING:
        return None
    is_main = threading.current_thread() is threading.main_thread()
    is_met = sent != signal.SIGKILL and (
        signal.getsignal(sent) is not signal.SIG_DFL or (is_main and sent in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    )
    return None if is_met else sent.name
