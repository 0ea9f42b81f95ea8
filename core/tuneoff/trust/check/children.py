"""The processes that make runs: each is told of the signals that end a check."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from tuneoff.base.processes import kill
from tuneoff.run.child import ask

RUN_SECONDS = 600.0  # a run that takes longer has lost its own supervisor


class Children:
    """The processes that make runs. A signal is passed on: each un-deploys its run and ends."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._raises = False  # a signal raises KeyboardInterrupt at once
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> Children:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before.append((number, signal.signal(number, self._tell)))
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal came."""
        if self._told.is_set():
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let the first signal end the block, in which the main thread waits for a process that is none of these."""
        self._raises = True
        try:
            self.check()
            yield
        finally:
            self._raises = False

    def ask(self, module: str, place: Path, request: Mapping[str, Any], seconds: float = RUN_SECONDS) -> Any:
        """Run a module on a request in `place` and return its answer; a text says why there is none."""
        if self._told.is_set():
            return "interrupted"
        told: list[int] = []

        def pass_on(pid: int) -> None:
            if self._told.is_set() and not told:
                told.append(pid)
                kill(pid, signal.SIGTERM)

        answer, end = ask(module, place, request, seconds, look=pass_on)
        if end.code is None:
            return f"it took longer than {seconds:g} s"
        return f"its process {end.text}" if answer is None else answer

    def _tell(self, signum: int, frame: FrameType | None) -> None:
        is_first = not self._told.is_set()
        self._told.set()
        if self._raises and is_first:  # a second one may not disturb what the first one ends
            raise KeyboardInterrupt
