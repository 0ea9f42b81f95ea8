"""The cache folder: unpacked IDX files, named by their content, written atomically under a lock, mapped by the trials."""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tuneoff.errors import DataError
from tuneoff_workloads.mnist_mlp.data.catalog import DataFile, Dataset
from tuneoff_workloads.mnist_mlp.data.idx import check_content

LOCK_TIMEOUT_SECONDS = 900.0
LOCK_POLL_SECONDS = 0.05


def cache_root() -> Path:
    """Return $TUNEOFF_CACHE_DIR, else $XDG_CACHE_HOME/tuneoff, else ~/.cache/tuneoff."""
    if own := os.environ.get("TUNEOFF_CACHE_DIR"):
        return Path(own).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "tuneoff"
    return Path.home() / ".cache" / "tuneoff"


def dataset_folder(dataset: Dataset) -> Path:
    """Return the folder of this version of the data set; it need not exist."""
    return cache_root() / f"{dataset.name}-{dataset.version}"


@contextmanager
def locked(folder: Path, timeout_seconds: float = LOCK_TIMEOUT_SECONDS) -> Iterator[None]:
    """Create `folder` and hold its lock, which dies with this process.

    Raises:
        DataError: the folder cannot be made, or another process holds the lock for too long.
    """
    path = folder.parent / f"{folder.name}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DataError(_cannot_write(folder, error)) from error
    try:
        _wait_for_lock(descriptor, path, timeout_seconds)
        yield
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or none.

    Raises:
        DataError: the folder is not writable or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DataError(_cannot_write(path.parent, error)) from error


def is_intact(path: Path, file: DataFile) -> bool:
    """Tell whether a cached file is there with the expected content (by SHA-256)."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


def map_file(folder: Path, file: DataFile) -> mmap.mmap:
    """Map a cached file copy-on-write; its pages are shared by all processes. Size and header are checked, not the digest.

    Raises:
        DataError: the file is missing, truncated, or no IDX file of that shape.
    """
    path = folder / file.name
    try:
        with path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError as error:
        raise DataError(f"{path}: the cached data are missing; start the matrix again, which prepares them") from error
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise DataError(f"{path}: the cached data cannot be read ({error}); delete the file and start again") from error
    with memoryview(mapped) as view:
        check_content(view, file.shape, str(path))
    return mapped


def _wait_for_lock(descriptor: int, path: Path, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise DataError(
                    f"{path}: another process has prepared these data for over {timeout_seconds:g} s; end it and try again"
                ) from error
            time.sleep(LOCK_POLL_SECONDS)


def _cannot_write(folder: Path, error: OSError) -> str:
    return f"{folder}: the cache cannot be written ({error.strerror or error}); set TUNEOFF_CACHE_DIR to a writable folder"
