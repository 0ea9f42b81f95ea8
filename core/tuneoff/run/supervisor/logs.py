"""The logs of an execution have a bound: of a log that has more, the first and the last part stay.

While it grows the disk of its middle is freed, which disturbs no writer: its length stays, and what is written comes after it.
When all writers have ended the hole is taken out, and a line says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuneoff.base.files import pinned
from tuneoff.base.layout import FRAMEWORK, LOG

HEAD_BYTES, TAIL_BYTES = 1_000_000, 4_000_000
LOOK_SECONDS = 1.0
LINE_BYTES = 10_000  # in which the end of a line is looked for: a log is cut between lines
LEFT_OUT = b"[tuneoff left out "  # how the line begins that stands for its middle
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02  # FALLOC_FL_
_BLOCK = 512  # of st_blocks


class Logs:
    """`patterns`: of an adapter's logs, below the framework's folder or the temporary one (`Adapter.logs`)."""

    def __init__(self, folder: Path, temporary: Path, patterns: Sequence[str]) -> None:
        self._folder, self._temporary, self._patterns = folder, temporary, patterns
        self._next_look = 0.0

    def look(self) -> None:
        """Free the middle of what has become too large; to be called again and again."""
        if time.monotonic() < self._next_look:
            return
        for path in (*self._kept(), *(path for pattern in self._patterns for path in self._temporary.glob(pattern))):
            with contextlib.suppress(OSError), _opened(path) as (log, size, used):
                if used > 2 * (HEAD_BYTES + TAIL_BYTES):  # a file system that cannot leaves it, until it is shortened
                    count = ctypes.c_longlong(size - HEAD_BYTES - TAIL_BYTES)
                    libc = ctypes.CDLL(None, use_errno=True)
                    libc.fallocate(log, _PUNCH_HOLE | _KEEP_SIZE, ctypes.c_longlong(HEAD_BYTES), count)
        self._next_look = time.monotonic() + LOOK_SECONDS

    def shorten(self) -> str | None:
        """Take the middle out of what is too large, and return how much of what that was; nobody writes any more."""
        left_out = {path: count for path in self._kept() if (count := shorten(path))}
        if not left_out:
            return None
        name = next(iter(left_out)).relative_to(self._folder)
        more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        kept = f"the first {HEAD_BYTES / 1e6:g} MB and the last {TAIL_BYTES / 1e6:g} MB were kept"
        return f"{name}{more}: {sum(left_out.values()) / 1e6:.1f} MB were left out, {kept}"

    def _kept(self) -> Iterator[Path]:
        yield self._folder / LOG
        for pattern in self._patterns:
            yield from sorted((self._folder / FRAMEWORK).glob(pattern))


def shorten(path: Path) -> int:
    """Take the middle out of a log that is too large, and return its bytes; a log in whose place something else is stays."""
    with contextlib.suppress(OSError), _opened(path) as (log, size, _):
        if size <= HEAD_BYTES + TAIL_BYTES + LINE_BYTES:
            return 0
        head = HEAD_BYTES - LINE_BYTES + os.pread(log, LINE_BYTES, HEAD_BYTES - LINE_BYTES).rfind(b"\n") + 1
        tail = os.pread(log, TAIL_BYTES, size - TAIL_BYTES)
        tail = tail[tail.find(b"\n", 0, LINE_BYTES) + 1 :]
        left_out = size - head - len(tail)
        line = LEFT_OUT + b"%d bytes here: a log keeps its first and its last part]\n" % left_out
        os.pwrite(log, line + tail, head)
        os.ftruncate(log, head + len(line) + len(tail))
        return left_out
    return 0


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[int, int, int]]:
    """Give the descriptor of a regular file that has one name and that no link leads to, its size, and what it has on the disk.

    Raises:
        OSError: it is none, or cannot be opened.
    """
    with pinned(path.parent) as folder:
        log = os.open(folder / path.name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        state = os.fstat(log)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            raise OSError(f"{path} is shared with another execution")
        yield log, state.st_size, state.st_blocks * _BLOCK
    finally:
        os.close(log)
