"""Make a data set available on this host: find its four files, check their content, and put them into the cache. No torch here.

They come from $TUNEOFF_DATA_DIR, scikit-learn (digits), or a download through torchvision. The cache folder has them unpacked,
named by their content and written atomically under a lock; trials map them.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import importlib.util
import logging
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from tuneoff.base.commands import install_command
from tuneoff.base.files import replacing, without_links
from tuneoff.base.processes import run_to_end
from tuneoff.errors import DataError, MissingPackageError
from tuneoff_workloads.mnist_mlp.catalog import DataFile, Dataset, Role, header

log = logging.getLogger(__name__)

DOWNLOAD_TIMEOUT_SECONDS = 600.0
_DOWNLOAD = "import sys, torchvision.datasets as d; getattr(d, sys.argv[1])(sys.argv[2], download=True)"
DIGIT_SHAPE, TEST_DIGITS_PER_CLASS = (8, 8), 30
_SALT = "tuneoff digits test split"  # never change it: the test split is fixed for ever


def prepare(dataset: Dataset) -> Path:
    """Check the data set and return its cache folder, whose files are then intact.

    Files in $TUNEOFF_DATA_DIR are checked in any case, a broken cached file is made again.

    Raises:
        DataError: a file is missing, truncated or corrupted and cannot be obtained, or the cache cannot be written.
    """
    source = data_folder(dataset)
    contents = None if source is None else read_folder(source, dataset)
    folder = dataset_folder(dataset)
    with locked(folder):
        broken = [(folder / file.name, role) for role, file in dataset.files.items() if not is_intact(folder / file.name, file)]
        for path, _ in broken:
            if path.exists():
                log.warning("%s: the cached file was changed; making it again", path)
        if broken and not contents and dataset.torchvision_class is None:
            contents = digits_files()
            for role, file in dataset.files.items():
                check_file(contents[role], file, dataset, "scikit-learn's digits.csv.gz")
        elif broken and not contents:
            with tempfile.TemporaryDirectory(prefix="download-", dir=folder) as temporary:
                contents = read_folder(download(dataset, Path(temporary)), dataset)
        for path, role in broken:
            try:
                with replacing(without_links(path)) as written:  # a reader sees all of it or none
                    written.write((contents or {})[role])
            except OSError as error:
                raise DataError(_cannot_write(folder, error)) from error
    return folder


def cache_root() -> Path:
    """Return $TUNEOFF_CACHE_DIR, else $XDG_CACHE_HOME/tuneoff, else ~/.cache/tuneoff."""
    if folder := os.environ.get("TUNEOFF_CACHE_DIR"):
        return Path(folder).expanduser()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "tuneoff"
    return Path.home() / ".cache" / "tuneoff"


def dataset_folder(dataset: Dataset) -> Path:
    """Return the folder of this version of the data set; it need not exist."""
    return cache_root() / f"{dataset.name}-{dataset.version}"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create `folder` and hold its lock, which dies with this process; another one that prepares it is waited for.

    Raises:
        DataError: the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / f"{folder.name}.lock").open("a")
    except OSError as error:
        raise DataError(_cannot_write(folder, error)) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_intact(path: Path, file: DataFile) -> bool:
    """Tell whether a cached file is there with the expected content (by SHA-256)."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


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
    """Check one content by its SHA-256.

    Raises:
        DataError: it is not that file of that data set.
    """
    actual = hashlib.sha256(content).hexdigest()
    if actual != file.sha256:
        raise DataError(
            f"{source}: the SHA-256 of {dataset.name}'s {file.name} must be {file.sha256[:16]}..., but is {actual[:16]}...; "
            f"the file is truncated, corrupted or of another data set: get it again"
        )


def digits_files() -> dict[Role, bytes]:
    """Return role -> IDX content of the bundled data, split into a training part and the fixed test part.

    Raises:
        MissingPackageError: scikit-learn is not installed.
        DataError: its data file is missing or has no such rows.
    """
    spec = importlib.util.find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(f"dataset 'digits' needs the scikit-learn package; run: {install_command('scikit-learn')}")
    import numpy as np

    path = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    try:
        rows = np.loadtxt(path, delimiter=",").astype(np.uint8)  # (images, pixels and label)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: scikit-learn's digits cannot be read ({error}); reinstall scikit-learn") from error
    # The test part: 30 images of each class, those whose salted index has the smallest SHA-256.
    rank = [hashlib.sha256(f"{_SALT} {index}".encode()).digest() for index in range(len(rows))]
    members = [sorted(np.flatnonzero(rows[:, -1] == digit), key=rank.__getitem__) for digit in range(10)]
    test = np.sort(np.concatenate([indices[:TEST_DIGITS_PER_CLASS] for indices in members]))
    contents = []
    for part in (np.delete(rows, test, axis=0), rows[test]):
        contents += [header((len(part), *DIGIT_SHAPE)) + part[:, :-1].tobytes(), header((len(part),)) + part[:, -1].tobytes()]
    return dict(zip(get_args(Role), contents, strict=True))


def download(dataset: Dataset, target: Path, timeout_seconds: float = DOWNLOAD_TIMEOUT_SECONDS) -> Path:
    """Download the four files of `dataset` under `target` and return their folder; the content is not yet checked.

    Raises:
        MissingPackageError: torchvision is not installed.
        DataError: the download failed or took too long.
    """
    if importlib.util.find_spec("torchvision") is None:
        raise MissingPackageError(
            f"downloading {dataset.name} needs the torchvision package, or else TUNEOFF_DATA_DIR with its four files; "
            f"run: {install_command('torchvision')}"
        )
    log.info("downloading %s to %s", dataset.name, target)
    name = str(dataset.torchvision_class)
    command = [sys.executable, "-c", _DOWNLOAD, name, str(target)]
    try:
        ended = run_to_end(command, timeout_seconds, environment={**os.environ, "OMP_NUM_THREADS": "1"})
    except TimeoutError as error:
        raise DataError(_no_download(dataset, f"no end after {timeout_seconds:g} s")) from error
    if ended.code != 0:
        lines = [line.strip() for line in ended.errors.splitlines() if line.strip()]
        raise DataError(_no_download(dataset, lines[-1] if lines else f"exit code {ended.code}"))
    return target / name / "raw"


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


def _find(folder: Path, file: DataFile) -> Path | None:
    for name in (f"{file.name}.gz", file.name):
        if (folder / name).is_file():
            return folder / name
    return None


def _no_download(dataset: Dataset, reason: str) -> str:
    return (
        f"{dataset.name} is neither in TUNEOFF_DATA_DIR nor in the cache, and its download failed ({reason}); "
        f"put its four IDX files into a folder and set TUNEOFF_DATA_DIR to it"
    )


def _cannot_write(folder: Path, error: OSError) -> str:
    return f"{folder}: the cache cannot be written ({error.strerror or error}); set TUNEOFF_CACHE_DIR to a writable folder"
