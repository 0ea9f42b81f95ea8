"""The IDX format of MNIST: two zero bytes, a type code, the number of dimensions, each dimension as a big-endian uint32,
then the values. Only unsigned bytes (type 0x08) occur in these data sets.

Source: the page of the MNIST database, section "file formats".
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

from tuneoff.errors import DataError

UNSIGNED_BYTE = 0x08


def header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an unsigned-byte IDX file of that shape."""
    return struct.pack(f">HBB{len(shape)}I", 0, UNSIGNED_BYTE, len(shape), *shape)


def check_content(content: bytes | memoryview, shape: tuple[int, ...], source: str) -> None:
    """Check that `content` is an IDX file of unsigned bytes with exactly that shape and length.

    Raises:
        DataError: the magic number, a dimension or the length is another one; the text names `source`.
    """
    start = len(header(shape))
    if len(content) < start:
        raise DataError(f"{source}: an IDX header needs {start} bytes, but the file has {len(content)}; get the file again")
    zeros, code, dimensions = struct.unpack_from(">HBB", content)
    if zeros != 0 or code != UNSIGNED_BYTE or dimensions != len(shape):
        expected, found = header(shape)[:4].hex(), bytes(content[:4]).hex()
        raise DataError(f"{source}: the magic number must be {expected}, but got {found}; it is not the expected IDX file")
    found_shape = struct.unpack_from(f">{len(shape)}I", content, 4)
    if found_shape != shape:
        raise DataError(f"{source}: the dimensions must be {shape}, but got {found_shape}; it is another data set")
    expected_length = start + math.prod(shape)
    if len(content) != expected_length:
        state = "truncated" if len(content) < expected_length else "too long"
        raise DataError(f"{source}: must have {expected_length} bytes, but has {len(content)} ({state}); get the file again")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked where it is gzip-compressed.

    Raises:
        DataError: it cannot be read, or its compressed data are truncated or corrupted.
    """
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: the gzip data are truncated or corrupted ({error}); get the file again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the file and its permissions") from error
