"""The data as a trial uses them: a split of the training part and the test part, as tensors over memory-mapped bytes."""

from __future__ import annotations

import functools
import hashlib
import math
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tuneoff.errors import DataError
from tuneoff_workloads.mnist_mlp.catalog import DataFile, Dataset
from tuneoff_workloads.mnist_mlp.prepare import dataset_folder
from tuneoff_workloads.mnist_mlp.specification import Options

Integers = np.ndarray[Any, np.dtype[Any]]
_CHUNK = 1024  # images counted at once: larger ones leave the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledImages:
    """Raw images as bytes (count, pixels) and their labels as int64 (count,), on one device."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """The training part, which images of it are trained on, the validation images, and the normalisation of all."""

    pool: LabelledImages
    train_indices: Tensor  # int64, ascending
    validation: LabelledImages
    mean: float  # of the pixels of the images trained on, and of no others
    deviation: float


def load_training_data(options: Options, split_seed: int, device: torch.device) -> TrainingData:
    """Return the data of a split; a second call with the same arguments in this process costs nothing.

    Raises:
        DataError: a cached file is missing, truncated or corrupted.
    """
    return _split(dataset_folder(options.dataset), options, split_seed, device)


def load_test_data(dataset: Dataset, device: torch.device) -> LabelledImages:
    """Return the test images; their SHA-256 is checked, as this happens once per run.

    Raises:
        DataError: a cached file is missing, truncated or corrupted.
    """
    folder = dataset_folder(dataset)
    images = _values(folder, dataset.files["test_images"], check_digest=True)
    labels = _values(folder, dataset.files["test_labels"], check_digest=True)
    return LabelledImages(images=images.view(-1, dataset.pixels).to(device), labels=labels.long().to(device))


def split_indices(labels: Integers, validation_size: int, seed: int, train_limit: int | None) -> tuple[Integers, Integers]:
    """Return the indices of training and validation images: disjoint, ascending, both with the classes' proportions.

    `seed` decides which images are drawn. With `train_limit`, so many of the training images, drawn likewise.
    """
    # RandomState, because numpy promises that its stream never changes between versions (NEP 19).
    order = np.random.RandomState(seed % 2**32).permutation(len(labels))
    validation = _draw(labels, order, validation_size)
    train = order[~np.isin(order, validation)]
    if train_limit is not None and train_limit < len(train):
        train = _draw(labels, train, train_limit)
    return np.sort(train), np.sort(validation)


def mean_and_deviation(images: Tensor, indices: Tensor) -> tuple[float, float]:
    """Return mean and standard deviation of the pixels of some images (count, pixels) of bytes; a deviation of 0 becomes 1.

    They come from the number of pixels of each value, so that they are exact on every machine.
    """
    chunks = torch.split(indices, _CHUNK)
    occurrences = torch.stack([torch.bincount(images[chunk].flatten(), minlength=256) for chunk in chunks]).sum(0).tolist()
    count = sum(occurrences)
    total = sum(value * pixels for value, pixels in enumerate(occurrences))
    total_of_squares = sum(value * value * pixels for value, pixels in enumerate(occurrences))
    variance = (count * total_of_squares - total * total) / (count * count)  # exact integers up to the division
    return total / count, math.sqrt(variance) if variance > 0 else 1.0


@functools.lru_cache(maxsize=2)  # a process goes through a run's trials, whose split is one
def _split(folder: Path, options: Options, seed: int, device: torch.device) -> TrainingData:
    dataset = options.dataset
    images = _values(folder, dataset.files["train_images"]).view(-1, dataset.pixels)
    labels = _values(folder, dataset.files["train_labels"])
    train, validation = map(torch.from_numpy, split_indices(labels.numpy(), options.validation_size, seed, options.train_limit))
    mean, deviation = mean_and_deviation(images, train)
    pool = LabelledImages(images=images.to(device), labels=labels.long().to(device))
    validation = validation.to(device)
    return TrainingData(
        pool=pool,
        train_indices=train.to(device),
        validation=LabelledImages(images=pool.images[validation], labels=pool.labels[validation]),
        mean=mean,
        deviation=deviation,
    )


def _draw(labels: Integers, order: Integers, size: int) -> Integers:
    """Return the first images of each class in `order`, `size` in all, shared among classes by largest remainder."""
    ordered_labels = labels[order]
    counts = np.bincount(ordered_labels)
    shares = counts * size // len(order)
    remainders = counts * size % len(order)
    for label in np.argsort(-remainders, kind="stable")[: size - int(shares.sum())]:
        shares[label] += 1
    return np.concatenate([order[ordered_labels == label][:share] for label, share in enumerate(shares)])


def _values(folder: Path, file: DataFile, *, check_digest: bool = False) -> Tensor:
    mapped = map_file(folder, file)
    if check_digest and hashlib.sha256(mapped).hexdigest() != file.sha256:
        raise DataError(f"{folder / file.name}: the cached data were changed; delete the file and start the matrix again")
    return torch.frombuffer(mapped, dtype=torch.uint8, offset=file.offset)


def map_file(folder: Path, file: DataFile) -> mmap.mmap:
    """Map a cached file copy-on-write; its pages are shared by all processes. Size and header are checked, not the digest.

    Raises:
        DataError: the file is missing, truncated, or no IDX file of that shape.
    """
    path = folder / file.name
    try:
        with path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise DataError(f"{path}: the cached data cannot be read ({error}); start the matrix again, which makes them") from error
    with memoryview(mapped) as view:
        if not file.has_form(view):
            raise DataError(f"{path}: the cached data must be {file.size_bytes} bytes for {file.shape}; start the matrix again")
    return mapped
