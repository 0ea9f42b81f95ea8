"""Read files that others made: never wait for a pipe, never follow a device without an end, never take more than fits."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

MOST_BYTES = 1 << 30  # of a file that is read whole: half a million epochs have a quarter of it


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises:
        OSError: it cannot be opened, or it is a folder, a pipe, a socket or a device.
    """
    _check_kind(path, os.stat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may have become a pipe since
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: as `open_regular`, or it has more than `most_bytes`; `strerror` says why.
    """
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise _too_large(path, most_bytes)
        content = file.read(most_bytes + 1)  # a file of /proc says that it has no byte
    if content is None:  # a file of /proc that has nothing yet
        raise OSError(errno.EAGAIN, "it is no file with an end", str(path))
    if len(content) > most_bytes:
        raise _too_large(path, most_bytes)
    return content


def read_regular_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a regular file in UTF-8.

    Raises:
        OSError: as `read_regular`.
        UnicodeDecodeError: it is none.
    """
    return read_regular(path, most_bytes).decode("utf-8")


def reason_of(error: Exception) -> str:
    """Return why a path cannot be used, as one line has it."""
    if isinstance(error, RuntimeError):  # what pathlib makes of links that lead in a circle
        return os.strerror(errno.ELOOP)
    return str(getattr(error, "strerror", None) or error)


def _check_kind(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a regular file", str(path))


def _too_large(path: Path, most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
