"""A training loop in the style of the older benchmarks: one image at a time through a Dataset, transforms and a DataLoader."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

IMAGES = 6_400  # an epoch of 55 000 would take seconds and show the same speed


class NaiveImages(Dataset[tuple[Any, int]]):
    """Makes a PIL image of each sample, then a tensor, then normalises it."""

    def __init__(self, images: numpy.ndarray[Any, Any], labels: numpy.ndarray[Any, Any]) -> None:
        self._images, self._labels = images, labels
        self._transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._transform(Image.fromarray(self._images[index])), int(self._labels[index])


class NaiveTraining:
    """Trains on the first images of MNIST's training files in TUNEOFF_DATA_DIR."""

    images = IMAGES

    def __init__(self, width: int, batch: int) -> None:
        images = read_idx("train-images-idx3-ubyte", 16).reshape(-1, 28, 28)[:IMAGES]
        labels = read_idx("train-labels-idx1-ubyte", 8)[:IMAGES]
        self._loader = DataLoader(NaiveImages(images, labels), batch_size=batch, shuffle=True)
        self._model = nn.Sequential(
            nn.Flatten(),
            nn.Linear(784, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 10),
        )
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=1e-3)
        self._loss = nn.CrossEntropyLoss()

    def train(self) -> None:
        """Train once on every image."""
        total = 0.0
        for images, labels in self._loader:
            self._optimizer.zero_grad()
            loss = self._loss(self._model(images), labels)
            loss.backward()
            self._optimizer.step()
            total += loss.item()


def read_idx(name: str, header_bytes: int) -> numpy.ndarray[Any, Any]:
    """Return the values of an IDX file, plain or gzip-compressed, below TUNEOFF_DATA_DIR."""
    root = Path(os.environ["TUNEOFF_DATA_DIR"])
    for path in sorted(root.rglob(f"{name}*")):
        raw = path.read_bytes()
        content = gzip.decompress(raw) if path.suffix == ".gz" else raw
        return numpy.frombuffer(content, dtype=numpy.uint8, offset=header_bytes)
    raise FileNotFoundError(f"{root} must hold {name} or {name}.gz")
