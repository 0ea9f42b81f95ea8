"""Options of the workload: what an experiment file may write under `workload.options`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tuneoff.errors import ExperimentError
from tuneoff_workloads.mnist_mlp.data.catalog import CATALOG, Dataset

Device = Literal["cpu", "cuda", "auto"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda", "auto")
DEFAULTS: Mapping[str, Any] = {"dataset": "digits", "device": "cpu", "validation_size": None, "train_limit": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked options."""

    dataset: Dataset
    device: Device = "cpu"
    validation_size: int  # images taken from the training part for validation; the rest is trained on
    train_limit: int | None = None  # train on so many images only; None: on all

    @property
    def train_size(self) -> int:
        """Number of images trained on."""
        available = self.dataset.train_size - self.validation_size
        return available if self.train_limit is None else min(available, self.train_limit)


def parse_options(options: Mapping[str, Any]) -> Options:
    """Check `options` and fill in the defaults: dataset digits, device cpu, the dataset's own validation size, no limit.

    Raises:
        ExperimentError: an unknown name, or a value outside its range.
    """
    unknown = sorted(set(options) - set(DEFAULTS))
    if unknown:
        raise ExperimentError(f"mnist_mlp has no option {unknown[0]!r}; its options: {', '.join(DEFAULTS)}")
    name = options.get("dataset", DEFAULTS["dataset"])
    if not isinstance(name, str) or name not in CATALOG:
        raise ExperimentError(f"mnist_mlp: `dataset` must be one of {', '.join(CATALOG)}, but got {name!r}")
    dataset = CATALOG[name]
    device = options.get("device", DEFAULTS["device"])
    if device not in DEVICES:
        raise ExperimentError(f"mnist_mlp: `device` must be one of {', '.join(DEVICES)}, but got {device!r}")
    largest = dataset.train_size - len(dataset.classes)
    validation_size = options.get("validation_size", dataset.validation_size)
    _check_count("validation_size", validation_size, len(dataset.classes), largest)
    train_limit = options.get("train_limit")
    if train_limit is not None:
        _check_count("train_limit", train_limit, 1, dataset.train_size)
    return Options(dataset=dataset, device=device, validation_size=validation_size, train_limit=train_limit)


def _check_count(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ExperimentError(f"mnist_mlp: `{name}` must be an integer from {low} to {high}, but got {value!r}")
