"""The files of a folder that anyone may have made: read and written without a link, a pipe or a device in the way.

A path that a person names may lead through links (`without_links`, once, where it is taken). Below it none is followed: what is
read is a regular file, what is written replaces its name, and what is changed in place has no other name. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

MOST_BYTES = 1 << 30  # of a file that is read whole: half a million epochs have a quarter of it
PLAIN_NAME = r"^[0-9A-Za-z][0-9A-Za-z._-]{0,99}(?![\s\S])"  # of a trial, an execution; `$` would let a newline pass
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20


def without_links(path: Path) -> Path:
    """Return a path to the same place that leads through no link; one that leads through none stays as it was written."""
    try:
        real = os.path.realpath(path)
        return path if real == os.path.abspath(path) else Path(real)
    except (OSError, ValueError):  # no current folder, a NUL byte: whoever opens it says so
        return path


def append_line(descriptor: int, line: bytes) -> None:
    """Write a line in one call, whole or not at all: what a full disk took of it is removed, or the next one would glue to it.

    Raises:
        OSError: it was not written.
    """
    written = os.write(descriptor, line)
    if written != len(line):
        take_back(descriptor, written)


def take_back(descriptor: int, written: int) -> NoReturn:
    """Remove the part of a line that a full disk took, and raise OSError."""
    with contextlib.suppress(OSError):  # of a pipe nothing can be taken back
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
    raise OSError(errno.ENOSPC, "the disk is full: it took only a part of a line")


@contextlib.contextmanager
def pinned(folder: Path, *, make: bool = False) -> Iterator[Path]:
    """Open a folder that no link leads to, and give a path to it that stays good whatever its names come to lead to.

    `make`: it and those above it are made where they are missing.

    Raises:
        OSError: it cannot be opened or made, or a part of its path is a link (ELOOP) or no folder.
    """
    descriptor = os.open("/" if folder.is_absolute() else ".", _FOLDER)
    try:
        for name in folder.parts[1:] if folder.is_absolute() else folder.parts:
            above = descriptor
            descriptor = _entered(above, name, folder, make)
            os.close(above)
        yield Path(f"/proc/self/fd/{descriptor}")
    except OSError as error:
        if isinstance(error.filename, str):  # what writes to an open file names none
            error.filename = error.filename.replace(f"/proc/self/fd/{descriptor}", str(folder), 1)
        raise
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, where they are missing.

    Raises:
        OSError: as `pinned`.
    """
    with pinned(path, make=True):
        pass


@contextlib.contextmanager
def regular(path: Path) -> Iterator[Path]:
    """Give a path to a regular file that no link leads to, for what opens files by their path itself.

    Raises:
        OSError: there is none, or a link, a folder, a pipe, a socket or a device is in its place.
    """
    with pinned(path.parent) as folder:
        check_kind(path, os.lstat(folder / path.name).st_mode)
        yield folder / path.name


def open_regular(path: Path, *, follow: bool = False) -> BufferedReader:
    """Open a regular file for reading. `follow`: a person named it, so links may lead to it.

    Raises:
        OSError: it cannot be opened, or it is a link, a folder, a pipe, a socket or a device.
    """
    if follow:
        check_kind(path, os.stat(path).st_mode)
        return open(_checked(path, os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)), "rb")
    with regular(path) as file:
        return open(_checked(path, os.open(file, os.O_RDONLY | _FILE)), "rb")


def sha256_of(path: Path, *, follow: bool = False) -> str:
    """Return the SHA-256 of a regular file.

    Raises:
        OSError: as `open_regular`.
    """
    with open_regular(path, follow=follow) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_regular(path: Path, most_bytes: int = MOST_BYTES, *, follow: bool = False) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: as `open_regular`, or it has more than `most_bytes`; `strerror` says why.
    """
    with open_regular(path, follow=follow) as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise _too_large(path, most_bytes)
        content = bytearray()
        while part := file.read(min(_CHUNK, most_bytes + 1 - len(content))):  # a file of /proc says that it has no byte
            content += part
            if len(content) > most_bytes:
                raise _too_large(path, most_bytes)
        if part is None:  # a file of /proc that has nothing yet
            raise OSError(errno.EAGAIN, "it is not a file with an end", str(path))
    return bytes(content)


def read_regular_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a regular file in UTF-8.

    Raises:
        OSError: as `read_regular`.
        UnicodeDecodeError: it is none.
    """
    return read_regular(path, most_bytes).decode("utf-8")


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """Return the JSON value of a regular file.

    Raises:
        OSError: as `read_regular`.
        ValueError: it is not JSON in UTF-8, or nested deeper than can be read.
    """
    try:
        return json.loads(read_regular_text(path, most_bytes))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a new file that takes a name in one step if the block ends well: a reader or a crash sees the old or the new one.

    What has the name is replaced, and never written to.

    Raises:
        OSError: as `pinned`, or the folder is full or cannot be written.
    """
    with pinned(path.parent) as folder:
        temporary = folder / f".{path.name}.{os.getpid()}.tmp"
        temporary.unlink(missing_ok=True)  # of a killed process that had this number
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, folder / path.name)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)  # it has its name unless the block failed


def open_to_change(path: Path, flags: int, *, shared: bool = False) -> int:
    """Open a regular file that is changed in place (a lock, a list), made where it is missing; return its descriptor.

    One that has another name, as in a copy by hard links, becomes a file of its own first: under the other name nothing changes.
    `shared`: it stays as it is, to be locked before that.

    Raises:
        OSError: as `replacing`, or a link, a folder, a pipe, a socket or a device is in its place.
    """
    with pinned(path.parent) as folder:
        entry = folder / path.name
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(entry)
            check_kind(path, status.st_mode)
            if status.st_nlink > 1 and not shared:
                with replacing(path) as file:
                    file.write(read_regular(path))
        return _checked(path, os.open(entry, flags | os.O_CREAT | _FILE, 0o644))


def odd_entries(folder: Path, besides: str | None = None) -> Iterator[tuple[Path, str]]:
    """Yield (path, what it is) of all below a folder that is neither a regular file nor a folder, or whose name is no UTF-8.

    `besides`: an entry of the folder that is not looked into. What cannot be listed is left out: whoever needs it says so.
    """
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = Path(entry.path)
            if not is_utf8(entry.name):
                yield path, "not named in UTF-8"
            elif entry.is_dir(follow_symlinks=False):
                waiting += [path] if path != folder / (besides or "") else []
            elif not entry.is_file(follow_symlinks=False) and (kind := kind_of(path)) is not None:
                yield path, kind


def is_utf8(name: str) -> bool:
    """Tell whether a file's name is UTF-8, as all names are that tuneoff gives; no record can hold another one."""
    return not any("\ud800" <= character <= "\udfff" for character in name)  # surrogates


def reason_of(error: Exception) -> str:
    """Return why a path cannot be used, as one line has it."""
    if isinstance(error, RuntimeError):  # what pathlib makes of links that lead in a circle
        return os.strerror(errno.ELOOP)
    return str(getattr(error, "strerror", None) or error)


def check_kind(path: Path, mode: int) -> None:
    """Refuse what is not a regular file, by the mode of its own entry.

    Raises:
        OSError: it is none.
    """
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISLNK(mode):
        raise _a_link(path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a regular file", str(path))


def _entered(above: int, name: str, folder: Path, make: bool) -> int:
    """Open a part of a folder's path, made where it is missing; `above`: the open part before it."""
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError as error:
        if not make:
            raise FileNotFoundError(error.errno, error.strerror, str(folder)) from error
        with contextlib.suppress(FileExistsError):  # somebody else made it meanwhile
            os.mkdir(name, dir_fd=above)
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as error:
        is_link = os.path.islink(f"/proc/self/fd/{above}/{name}")
        raise _a_link(folder, name) if is_link else OSError(error.errno, error.strerror, str(folder)) from error


def _checked(path: Path, descriptor: int) -> int:
    """Return a descriptor if it is a regular file's; it may have become another one since it was looked at."""
    try:
        check_kind(path, os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(path: Path) -> str | None:
    """Return what an entry is, in words; None: a folder that holds it, or it itself, is gone."""
    try:
        return _KINDS.get(stat.S_IFMT(os.lstat(path).st_mode))
    except OSError:  # it is gone
        return None


def _a_link(path: Path, name: str = "") -> OSError:
    text = f"{name or path.name} is a link, which is not followed here: put the file or folder itself there"
    return OSError(errno.ELOOP, text, str(path))


def _too_large(path: Path, most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
