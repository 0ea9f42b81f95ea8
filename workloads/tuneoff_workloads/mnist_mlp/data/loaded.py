"""The data as a trial uses them: tensors over memory-mapped bytes, kept per process between trials."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tuneoff.errors import DataError
from tuneoff_workloads.mnist_mlp.data.cache import dataset_folder, map_file
from tuneoff_workloads.mnist_mlp.data.catalog import DataFile, Dataset, Role
from tuneoff_workloads.mnist_mlp.data.moments import FILE_NAME, mean_and_deviation, read_moments
from tuneoff_workloads.mnist_mlp.data.splits import split_indices
from tuneoff_workloads.mnist_mlp.options import Options

KEPT = 2  # splits that a process remembers
_kept: OrderedDict[tuple[object, ...], TrainingData] = OrderedDict()


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
    validation_indices: Tensor
    validation: LabelledImages
    mean: float  # of the pixels of the images trained on, and of no others
    deviation: float


def load_training_data(options: Options, split_seed: int, device: torch.device) -> TrainingData:
    """Return the data of a split; a second call with the same arguments in this process costs nothing.

    Raises:
        DataError: a cached file is missing, truncated or corrupted.
    """
    dataset = options.dataset
    folder = dataset_folder(dataset)
    key = (folder, options.validation_size, options.train_limit, split_seed, str(device))
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    data = _load(options, folder, split_seed, device)
    _kept[key] = data
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return data


def load_test_data(dataset: Dataset, device: torch.device) -> LabelledImages:
    """Return the test images; their SHA-256 is checked, as this happens once per run.

    Raises:
        DataError: a cached file is missing, truncated or corrupted.
    """
    folder = dataset_folder(dataset)
    images = _values(folder, dataset.files["test_images"], check_digest=True)
    labels = _values(folder, dataset.files["test_labels"], check_digest=True)
    return LabelledImages(images=images.view(-1, dataset.pixels).to(device), labels=labels.long().to(device))


def _load(options: Options, folder: Path, split_seed: int, device: torch.device) -> TrainingData:
    dataset = options.dataset
    roles: tuple[Role, Role] = ("train_images", "train_labels")
    images, labels = (_values(folder, dataset.files[role]) for role in roles)
    train, validation = split_indices(labels.numpy(), options.validation_size, split_seed, options.train_limit)
    sums = read_moments(folder / FILE_NAME, dataset)[train].sum(axis=0)
    mean, deviation = mean_and_deviation(int(sums[0]), int(sums[1]), len(train) * dataset.pixels)
    pool = LabelledImages(images=images.view(-1, dataset.pixels).to(device), labels=labels.long().to(device))
    validation_indices = torch.from_numpy(validation).long().to(device)
    return TrainingData(
        pool=pool,
        train_indices=torch.from_numpy(train).long().to(device),
        validation_indices=validation_indices,
        validation=LabelledImages(
            images=pool.images.index_select(0, validation_indices), labels=pool.labels.index_select(0, validation_indices)
        ),
        mean=mean,
        deviation=deviation,
    )


def _values(folder: Path, file: DataFile, *, check_digest: bool = False) -> Tensor:
    mapped = map_file(folder, file)
    if check_digest and hashlib.sha256(mapped).hexdigest() != file.sha256:
        raise DataError(f"{folder / file.name}: the cached data were changed; delete the file and start the matrix again")
    return torch.frombuffer(mapped, dtype=torch.uint8, offset=file.offset)
