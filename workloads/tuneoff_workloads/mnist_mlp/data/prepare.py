"""Make a data set available on this host: find it, check its content, and put it into the cache. No torch here."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from tuneoff.errors import DataError
from tuneoff_workloads.mnist_mlp.data import moments
from tuneoff_workloads.mnist_mlp.data.cache import dataset_folder, is_intact, locked, write_atomically
from tuneoff_workloads.mnist_mlp.data.catalog import Dataset, Role
from tuneoff_workloads.mnist_mlp.data.digits import digits_files
from tuneoff_workloads.mnist_mlp.data.download import download
from tuneoff_workloads.mnist_mlp.data.sources import check_file, data_folder, read_folder

log = logging.getLogger(__name__)


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
        broken = [role for role, file in dataset.files.items() if not is_intact(folder / file.name, file)]
        if broken:
            _warn_of_changed_files(folder, dataset, broken)
            contents = contents or _obtain(dataset, folder)
            for role in broken:
                write_atomically(folder / dataset.files[role].name, contents[role])
        if not moments.is_intact(folder / moments.FILE_NAME, dataset):
            _write_moments(folder, dataset)
    return folder


def _obtain(dataset: Dataset, folder: Path) -> dict[Role, bytes]:
    if dataset.torchvision_class is None:
        contents = digits_files()
        for role, file in dataset.files.items():
            check_file(contents[role], file, dataset, "scikit-learn's digits.csv.gz")
        return contents
    with tempfile.TemporaryDirectory(prefix="download-", dir=folder) as temporary:
        return read_folder(download(dataset, Path(temporary)), dataset)


def _write_moments(folder: Path, dataset: Dataset) -> None:
    file = dataset.files["train_images"]
    path = folder / file.name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); delete the cache folder and start again") from error
    pixels = memoryview(content)[file.offset :]
    write_atomically(folder / moments.FILE_NAME, moments.pack_moments(pixels, dataset.train_size, dataset.pixels))


def _warn_of_changed_files(folder: Path, dataset: Dataset, broken: list[Role]) -> None:
    for role in broken:
        if (folder / dataset.files[role].name).exists():
            log.warning("%s: the cached file was changed; making it again", folder / dataset.files[role].name)
