"""Sums of each image's pixels and squared pixels, so that a split's mean and standard deviation are exact and instant."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.errors import DataError
from tuneoff_workloads.mnist_mlp.data.catalog import Dataset

if TYPE_CHECKING:
    import numpy as np

FILE_NAME = "train-moments-i64"
DIGEST_BYTES = 32
_CHUNK = 4096  # images squared at once: bounds the memory at 26 MB


def pack_moments(images: bytes | memoryview, count: int, pixels: int) -> bytes:
    """Return little-endian int64 (count, 2): sum and sum of squares per image, followed by the SHA-256 of these bytes."""
    import numpy as np

    matrix = np.frombuffer(images, dtype=np.uint8).reshape(count, pixels)
    moments = np.empty((count, 2), dtype="<i8")
    for start in range(0, count, _CHUNK):
        chunk = matrix[start : start + _CHUNK].astype(np.int64)
        moments[start : start + _CHUNK, 0] = chunk.sum(axis=1)
        moments[start : start + _CHUNK, 1] = (chunk * chunk).sum(axis=1)
    body = moments.tobytes()
    return body + hashlib.sha256(body).digest()


def is_intact(path: Path, dataset: Dataset) -> bool:
    """Tell whether the file is there, complete and unchanged."""
    try:
        _body(path, dataset)
    except DataError:
        return False
    return True


def read_moments(path: Path, dataset: Dataset) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Read back what `pack_moments` gave, shape (images of the training part, 2).

    Raises:
        DataError: the file is missing, truncated or corrupted.
    """
    import numpy as np

    return np.frombuffer(_body(path, dataset), dtype="<i8").reshape(dataset.train_size, 2)


def mean_and_deviation(total: int, total_of_squares: int, count: int) -> tuple[float, float]:
    """Return mean and standard deviation of `count` numbers from exact sums; a deviation of 0 becomes 1."""
    mean = total / count
    variance = (count * total_of_squares - total * total) / (count * count)  # exact integers up to the division
    return mean, math.sqrt(variance) if variance > 0 else 1.0


def _body(path: Path, dataset: Dataset) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: the cached sums cannot be read ({error.strerror}); start the matrix again") from error
    body, stated = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if len(body) != dataset.train_size * 16 or hashlib.sha256(body).digest() != stated:
        raise DataError(f"{path}: the cached sums are truncated or corrupted; delete the file and start the matrix again")
    return body
