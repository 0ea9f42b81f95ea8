"""Each defect of earlier benchmarks' use of the data: the test that would catch it and, where it helps, the defect planted."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mlp_by_hand import parts
from tuneoff.errors import DataError
from tuneoff_workloads.mnist_mlp import MnistMlp, data
from tuneoff_workloads.mnist_mlp.catalog import DataFile
from tuneoff_workloads.mnist_mlp.data import map_file
from tuneoff_workloads.mnist_mlp.model import Mlp

Load = Callable[..., MnistMlp]


# 4. Normalisation was bypassed: raw bytes went into the model.


def test_the_model_trains_on_normalised_images(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    original = Mlp.train_on

    def spy(self: Mlp, images: torch.Tensor, *rest: Any) -> None:
        seen.append(images.clone())
        original(self, images, *rest)

    monkeypatch.setattr(Mlp, "train_on", spy)
    workload = load()
    workload.train_epoch(1)
    images = torch.cat(seen)
    assert len(images) == 1200
    assert float(images.mean()) == pytest.approx(0, abs=1e-5)
    assert float(images.std(correction=0)) == pytest.approx(1, abs=1e-5)
    raw = parts(workload)._data.pool.images.float()
    assert abs(float(raw.mean())) > 1  # the planted defect would be seen
    first = len(seen)
    workload.train_epoch(2)
    again = torch.cat(seen[first:])
    assert not torch.equal(again, images)  # in an order of its own
    assert torch.equal(again.sort(0).values, images.sort(0).values)


def test_normalisation_is_fitted_on_the_images_trained_on_alone(load: Load) -> None:
    split = parts(load())._data
    trained_on = split.pool.images.numpy()[split.train_indices.numpy()]
    assert split.mean == pytest.approx(trained_on.mean(), rel=1e-12)
    assert split.deviation == pytest.approx(trained_on.std(), rel=1e-12)
    assert split.mean != pytest.approx(split.pool.images.numpy().mean(), rel=1e-9)  # not those of training + validation


# 5. The test images were the training images.


def test_no_test_file_is_opened_before_the_test_and_a_changed_one_is_refused(
    own_digits: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def spy(folder: Path, file: DataFile) -> mmap.mmap:
        opened.append(file.name)
        return map_file(folder, file)

    monkeypatch.setattr(data, "map_file", spy)
    workload = load()
    workload.train_epoch(1)
    workload.validate()
    assert opened == ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]
    workload.test()
    assert opened[2:] == ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
    path = own_digits / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(DataError, match="were changed"):
        workload.test()


# And from the sections on other suites: the score depended on the batch size, and small remainders were dropped.


@pytest.mark.parametrize("batch_size", [7, 64, 5000])
def test_every_image_is_trained_on_once_and_validated_on_whatever_the_batch_size(
    load: Load, batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    original = Mlp.train_on

    def spy(self: Mlp, images: torch.Tensor, *rest: Any) -> None:
        counts.append(len(images))
        original(self, images, *rest)

    monkeypatch.setattr(Mlp, "train_on", spy)
    workload = load(batch_size=batch_size)
    assert math.isfinite(workload.train_epoch(1)["train_loss"])
    assert sum(counts) == 1200
    validation = parts(workload)._data.validation
    assert sum(map(sum, parts(workload)._evaluate(validation).confusion)) == 297
