"""The file that keeps the objects: one line per change, so that a server that is killed loses nothing it has answered for.

A line is `CRC32 JSON`, written in one call before the change is answered. A last line without its end was never answered for, and
is dropped. Anything else that cannot be read is damage, and is refused: a server that guesses would lose objects in silence.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NAME = "journal"


class JournalError(Exception):
    """The journal cannot be read or written; the text is one line for the user."""


class Journal:
    """The journal in `folder`; only one server at a time may hold it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._broken = False
        self._guarded(lambda: folder.mkdir(mode=0o700, parents=True, exist_ok=True))
        self._lock = os.open(folder / f"{NAME}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise JournalError(f"another server uses the folder {folder}; end it, or give another folder") from error
        self._file = -1
        self.bytes = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the entries, oldest first; a torn last line is left out, and goes with the next `rewrite`.

        Raises:
            JournalError: a whole line is damaged.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), start=1):
            checksum, _, text = line.partition(b" ")
            if checksum != b"%08x" % zlib.crc32(text):
                raise JournalError(f"{self.path} is damaged in line {number}; remove the folder to start without its objects")
            yield json.loads(text)

    def append(self, line: bytes) -> None:
        """Write one encoded entry in one call.

        Raises:
            JournalError: the disk is full, or the file cannot be written.
        """
        self._guarded(lambda: self._write(line))
        self.bytes += len(line)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def rewrite(self, entries: list[dict[str, Any]]) -> None:
        """Replace the file by these entries, so that it does not grow for ever; a crash leaves the old or the new one.

        Raises:
            JournalError: the disk is full, or the file cannot be written.
        """
        lines = b"".join(map(encode, entries))
        self._guarded(lambda: self._replace(lines))
        self.bytes = len(lines)

    def _replace(self, lines: bytes) -> None:
        fresh = self.path.with_suffix(".new")
        with fresh.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)
        if self._file >= 0:
            os.close(self._file)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _guarded(self, step: Callable[[], object]) -> None:
        if self._broken:  # a later line would be glued to the torn one
            raise JournalError(f"cannot write {self.path}: an earlier write failed")
        try:
            step()
        except OSError as error:
            self._broken = True
            raise JournalError(f"cannot write {self.path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Let go of the files and of the lock."""
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1


def is_in_use(folder: Path) -> bool:
    """Whether a living server holds the folder's journal; a folder that is gone counts as free."""
    try:
        descriptor = os.open(folder / f"{NAME}.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def encode(entry: dict[str, Any]) -> bytes:
    """Return an entry as a line of the journal."""
    text = json.dumps(entry, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)
