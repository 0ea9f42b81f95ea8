"""Write a run's `power.jsonl`: one `os.write` per line, so a kill costs at most the last one, and a full disk only lines."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec

from tuneoff.base import clock
from tuneoff.base.files import append_line
from tuneoff.record.samples.schema import FILE_NAME, Header, Line, Note

MOST_NOTES = 20  # of different texts: what fails again and again may say something new each time

_encode = msgspec.json.Encoder().encode


class SampleWriter:
    """Appends lines from several threads; a line that the disk does not take is counted, and noted once lines are taken again."""

    def __init__(self, folder: Path, header: Header) -> None:
        """Make the file with its header.

        Raises:
            OSError: it cannot be made.
        """
        self.path = folder / FILE_NAME
        self.written_bytes = 0
        self._lock = threading.Lock()
        self._noted: set[str] = set()
        self._lost, self._problem = 0, ""
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._append(header)
        except OSError:  # nothing can follow a header that is not there
            self.close()
            self.path.unlink(missing_ok=True)
            raise

    def write(self, line: Line) -> None:
        """Append a line."""
        with self._lock:
            if self._descriptor < 0:
                return
            try:
                if self._lost:
                    text = f"{self._lost} samples could not be written: {self._problem}"
                    self._append(Note(t=clock.monotonic_ns(), text=text))
                    self._lost = 0
                self._append(line)
            except OSError as error:
                self._lost, self._problem = self._lost + 1, error.strerror or str(error)

    def note(self, text: str, *, second: bool = False) -> None:
        """Append a note, maybe of the `second` meter; each text once, and no more than `MOST_NOTES`."""
        text = " ".join(text.split())
        if text not in self._noted and len(self._noted) < MOST_NOTES:
            self._noted.add(text)
            self.write(Note(t=clock.monotonic_ns(), text=text, second=second))

    def close(self, within_seconds: float = 1.0) -> None:
        """End the file: nothing is written any more, whoever still tries. May be called twice."""
        if not self._lock.acquire(timeout=within_seconds):  # a write hangs: the descriptor stays its own
            return
        try:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
        finally:
            self._lock.release()

    def _append(self, line: Line) -> None:
        text = _encode(line) + b"\n"
        append_line(self._descriptor, text)
        self.written_bytes += len(text)
