"""Where the files of a data set come from: TUNEOFF_DATA_DIR, the cache, scikit-learn (digits), or a download."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tuneoff.errors import DataError
from tuneoff_workloads.mnist_mlp.data.catalog import DataFile, Dataset, Role
from tuneoff_workloads.mnist_mlp.data.idx import check_content, read_bytes


def data_folder(dataset: Dataset) -> Path | None:
    """Return the folder under $TUNEOFF_DATA_DIR that has files of the data set; None where it is unset or has none.

    The four files lie in the data set's own sub-folder (`mnist` or `MNIST/raw`, `fashion_mnist` or `FashionMNIST/raw`), or
    directly there; both data sets use the same file names, and the digests tell them apart.

    Raises:
        DataError: the variable names no folder.
    """
    root = os.environ.get("TUNEOFF_DATA_DIR")
    if not root or not dataset.folders:
        return None
    base = Path(root).expanduser()
    if not base.is_dir():
        raise DataError(f"TUNEOFF_DATA_DIR must name a folder, but {base} is none; correct or unset it")
    for folder in (*(base / name for name in dataset.folders), base):
        if any(_find(folder, file) for file in dataset.files.values()):
            return folder
    return None


def read_folder(folder: Path, dataset: Dataset) -> dict[Role, bytes]:
    """Read the four files, packed or not, and check each content.

    Raises:
        DataError: a file is missing, truncated, corrupted, or of another data set.
    """
    contents: dict[Role, bytes] = {}
    for role, file in dataset.files.items():
        path = _find(folder, file)
        if path is None:
            raise DataError(f"{folder}: {file.name}.gz of {dataset.name} is missing; put it there or unset TUNEOFF_DATA_DIR")
        content = read_bytes(path)
        check_file(content, file, dataset, str(path))
        contents[role] = content
    return contents


def check_file(content: bytes, file: DataFile, dataset: Dataset, source: str) -> None:
    """Check one content: its IDX header and length, then its SHA-256.

    Raises:
        DataError: it is not that file of that data set.
    """
    check_content(content, file.shape, source)
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise DataError(
            f"{source}: the content's SHA-256 must be {file.sha256[:16]}... for {dataset.name}, but is {found[:16]}...; "
            f"the file is corrupted or of another data set: get it again"
        )


def _find(folder: Path, file: DataFile) -> Path | None:
    for name in (f"{file.name}.gz", file.name):
        if (folder / name).is_file():
            return folder / name
    return None
