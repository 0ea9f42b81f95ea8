"""The handwritten digits that scikit-learn bundles, as four IDX files. Found and read without importing scikit-learn."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from tuneoff.base.commands import install_command
from tuneoff.errors import DataError, MissingPackageError
from tuneoff_workloads.mnist_mlp.data.catalog import Role
from tuneoff_workloads.mnist_mlp.data.idx import header, read_bytes

COUNT, HEIGHT, WIDTH = 1797, 8, 8
TEST_PER_CLASS = 30
_SALT = "tuneoff digits test split"  # never change it: the test split is fixed for ever


def digits_files() -> dict[Role, bytes]:
    """Return role -> IDX content of the bundled data, split into a training part and the fixed test part.

    Raises:
        MissingPackageError: scikit-learn is not installed.
        DataError: its data file is missing or is not the known one.
    """
    path = _bundled_file()
    images, labels = _parse(read_bytes(path), path)
    test = test_indices(labels)
    train = [index for index in range(COUNT) if index not in test]
    return {
        "train_images": _images_file([images[index] for index in train]),
        "train_labels": _labels_file([labels[index] for index in train]),
        "test_images": _images_file([images[index] for index in sorted(test)]),
        "test_labels": _labels_file([labels[index] for index in sorted(test)]),
    }


def test_indices(labels: list[int]) -> set[int]:
    """Return the test part: 30 images of each class, those whose salted index has the smallest SHA-256."""
    rank = {index: hashlib.sha256(f"{_SALT} {index}".encode()).digest() for index in range(len(labels))}
    chosen: set[int] = set()
    for digit in sorted(set(labels)):
        members = [index for index, label in enumerate(labels) if label == digit]
        chosen.update(sorted(members, key=rank.__getitem__)[:TEST_PER_CLASS])
    return chosen


def _images_file(images: list[bytes]) -> bytes:
    return header((len(images), HEIGHT, WIDTH)) + b"".join(images)


def _labels_file(labels: list[int]) -> bytes:
    return header((len(labels),)) + bytes(labels)


def _bundled_file() -> Path:
    spec = importlib.util.find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(f"dataset 'digits' needs the scikit-learn package; run: {install_command('scikit-learn')}")
    path = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    if not path.is_file():
        raise DataError(f"{path}: scikit-learn's digits are missing; reinstall it: pip install --force-reinstall scikit-learn")
    return path


def _parse(content: bytes, path: Path) -> tuple[list[bytes], list[int]]:
    images, labels = [], []
    try:
        for line in content.split():
            *pixels, label = (int(float(field)) for field in line.split(b","))
            images.append(bytes(pixels))
            labels.append(label)
    except ValueError as error:
        raise DataError(f"{path}: line {len(labels) + 1} is not a row of numbers ({error}); reinstall scikit-learn") from error
    if len(labels) != COUNT or any(len(image) != HEIGHT * WIDTH for image in images):
        raise DataError(f"{path}: must have {COUNT} rows of 64 pixels and a label, but has {len(labels)}; reinstall scikit-learn")
    return images, labels
