"""The processes that make runs: asked by a file, answered by a file, told of signals, and never left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from tuneoff.base.processes import last_words
from tuneoff.run.supervisor.coordinator import import_path
from tuneoff.run.trial.limits import as_parent
from tuneoff.trust.check.one_run import ANSWER

RUN_SECONDS = 600.0  # a run that takes longer has lost its own supervisor
LOG = "process.txt"


class Children:
    """The processes that make runs. A signal is passed on: each un-deploys its run and ends."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
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
        with self._lock:
            left = list(self._running)
        for process in left:  # an error of ours: nothing is left running
            process.kill()
            process.wait()

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
        path = place / "request.json"
        path.write_text(json.dumps(request))
        with (place / LOG).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a terminal's Ctrl-C comes through us, once
                env={**os.environ, **import_path(), **as_parent()},
            )
        with self._lock:
            self._running.add(process)
        if self._told.is_set():  # while it was started, when it was not known yet
            process.terminate()
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"it took longer than {seconds:g} s"
        finally:
            with self._lock:
                self._running.discard(process)
        if not (place / ANSWER).exists():
            return f"its process ended with exit code {code}: {last_words(place / LOG)}"
        return json.loads((place / ANSWER).read_text())

    def _tell(self, signum: int, frame: FrameType | None) -> None:
        is_first = not self._told.is_set()
        self._told.set()
        for process in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        if self._raises and is_first:  # a second one may not disturb what the first one ends
            raise KeyboardInterrupt
