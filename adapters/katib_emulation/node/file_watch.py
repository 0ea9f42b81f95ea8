"""Waiting until files of a folder change, by the kernel's inotify: no polling, and a new line is seen within a millisecond."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
from pathlib import Path
from types import TracebackType

POLL_SECONDS = 0.05
"""How often a caller should look by itself where the kernel gives no watch (its number is limited per user)."""

_CHANGED = 0x002 | 0x004 | 0x008 | 0x100 | 0x080  # IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_CREATE, IN_MOVED_TO
_CLOSE_ON_EXEC, _NON_BLOCKING = 0o2000000, 0o4000
_libc = ctypes.CDLL(None, use_errno=True)


class FileWatch:
    """A watch on a folder. `descriptor` is readable after a change; it is None where there is no watch."""

    def __init__(self, folder: Path) -> None:
        descriptor: int = _libc.inotify_init1(_CLOSE_ON_EXEC | _NON_BLOCKING)
        if descriptor >= 0 and _libc.inotify_add_watch(descriptor, os.fsencode(folder), _CHANGED) < 0:
            os.close(descriptor)
            descriptor = -1
        self.descriptor = descriptor if descriptor >= 0 else None

    @property
    def poll_seconds(self) -> float | None:
        """How long a caller may wait for `descriptor` alone: None (for ever) where there is a watch."""
        return None if self.descriptor is not None else POLL_SECONDS

    def drain(self) -> None:
        """Forget the changes so far. Call it before reading the files, not after."""
        if self.descriptor is not None:
            with contextlib.suppress(BlockingIOError):  # nothing has changed
                os.read(self.descriptor, 65536)

    def wait(self, seconds: float) -> None:
        """Wait for a change, at most so long (shorter where there is no watch)."""
        if self.descriptor is None:
            seconds = min(seconds, POLL_SECONDS)
        poll = select.poll()
        if self.descriptor is not None:
            poll.register(self.descriptor, select.POLLIN)
        poll.poll(seconds * 1000)

    def __enter__(self) -> FileWatch:
        return self

    def __exit__(self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
