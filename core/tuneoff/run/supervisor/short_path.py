"""A short path to a folder: that of a Unix socket may have 107 bytes, and frameworks make theirs far below TMPDIR."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

LONGEST_BYTES = 39  # of a folder that leaves room for `/ray/session_<time and pid>/sockets/plasma_store`


@contextlib.contextmanager
def short_path(folder: Path) -> Iterator[Path]:
    """Give a path to `folder` of at most `LONGEST_BYTES`, its own if that is short, for the processes of this user.

    Else it is the one that the kernel gives to a folder that this process has open: it is there as long as the block runs.
    """
    if len(os.fsencode(folder)) <= LONGEST_BYTES:
        yield folder
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)
