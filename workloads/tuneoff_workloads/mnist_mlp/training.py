"""Training, validation and test of one configuration: everything of the workload that needs torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import NamedTuple

import numpy.random  # noqa: F401 (else the first split of a process loads it, in a trial's load time)
import torch
from torch import Tensor

from tuneoff.base.identity import derive_seed
from tuneoff.errors import CheckpointError, ExperimentError
from tuneoff.workload import Scores, StateTensor, TrialSeeds
from tuneoff_workloads.mnist_mlp import scores
from tuneoff_workloads.mnist_mlp.data.loaded import LabelledImages, load_test_data, load_training_data
from tuneoff_workloads.mnist_mlp.mlp import Mlp
from tuneoff_workloads.mnist_mlp.optimizer import make_optimizer
from tuneoff_workloads.mnist_mlp.options import Device, Options
from tuneoff_workloads.mnist_mlp.specification import Hyperparameters
from tuneoff_workloads.mnist_mlp.state import restore, to_state

EVALUATION_BATCH = 1024  # larger ones leave the cache
_SMALLEST_NORMAL, _TWO = sys.float_info.min, 2.0  # two names, so that the quotient is computed when it is asked for


class _Evaluation(NamedTuple):
    loss: float  # mean cross-entropy
    confusion: list[list[int]]  # [true class][predicted class]


def limit_threads(threads: int) -> None:
    """Limit torch's compute threads in this process and in the calling thread."""
    torch.set_num_threads(threads)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Take denormal numbers for 0 meanwhile: the time of a step must not depend on the learning rate.

    It is a mode of the calling thread's processor, which other code in the process (a framework's sampler) must not inherit.
    """
    before = _SMALLEST_NORMAL / _TWO == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def choose_device(device: Device) -> torch.device:
    """Return the device for an option; `auto` is CUDA where there is one.

    Raises:
        ExperimentError: CUDA is asked for and there is none.
    """
    if device == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    if device == "cuda":
        raise ExperimentError("mnist_mlp: `device: cuda` needs a CUDA device, but torch finds none; use cpu or auto")
    return torch.device("cpu")


class Training:
    """A model in training. All randomness comes from generators of its own, seeded by the trial's seeds."""

    def __init__(self, options: Options, hyperparameters: Hyperparameters, seeds: TrialSeeds) -> None:
        """Load the data of the split and build model, optimizer and random generators.

        Raises:
            DataError: a cached data file is missing, truncated or corrupted.
            ExperimentError: the device does not exist.
        """
        self.device = choose_device(options.device)
        self._dataset = options.dataset
        self._data = load_training_data(options, seeds.split, self.device)
        self._scale = 1 / self._data.deviation
        self._shift = torch.tensor(-self._data.mean / self._data.deviation, device=self.device)
        count, pixels = len(self._data.train_indices), options.dataset.pixels
        self._batch_size = min(hyperparameters.batch_size, count)
        self._model = Mlp(
            sizes=(pixels, *hyperparameters.hidden_widths, len(options.dataset.classes)),
            activation=hyperparameters.activation,
            dropout=hyperparameters.dropout,
            seed=derive_seed("initialization", seeds.trial),
            device=self.device,
        )
        self._optimizer = make_optimizer(hyperparameters, self._model.parameters, self._model.gradients)
        self._order = torch.Generator().manual_seed(derive_seed("order", seeds.trial))
        self._dropout = torch.Generator(self.device).manual_seed(derive_seed("dropout", seeds.trial))
        self._raw = torch.empty(self._batch_size, pixels, dtype=torch.uint8, device=self.device)
        self._images = torch.empty(self._batch_size, pixels, device=self.device)
        self._make_epoch_buffers(count, len(options.dataset.classes))

    @flushed_denormals()
    @torch.inference_mode()
    def train_epoch(self) -> Mapping[str, float]:
        """Train once on every image of the training split, in a new random order."""
        pool, size, classes = self._data.pool, self._batch_size, len(self._dataset.classes)
        permutation = torch.randperm(len(self._data.train_indices), generator=self._order).to(self.device)
        indices = self._data.train_indices.index_select(0, permutation)
        targets = pool.labels.index_select(0, indices) * self._batch_lengths + self._batch_positions
        batches = zip(torch.split(indices, size), torch.split(targets, size), self._log_probabilities, strict=True)
        for batch_indices, batch_targets, log_probabilities in batches:
            raw, images = self._raw, self._images
            if len(batch_indices) < size:
                raw, images = raw[: len(batch_indices)], images[: len(batch_indices)]
            torch.index_select(pool.images, 0, batch_indices, out=raw)
            self._model.train_on(self._normalised(raw, images), batch_targets, log_probabilities, self._dropout)
            self._optimizer.step()
        likelihoods = self._all_log_probabilities.index_select(0, targets + self._batch_starts * classes)
        return {"train_loss": -float(likelihoods.mean())}

    def validate(self) -> Mapping[str, float]:
        """Return loss, accuracy and macro-F1 on the validation split."""
        evaluation = self._evaluate(self._data.validation)
        return {
            "validation_loss": evaluation.loss,
            "validation_accuracy": scores.accuracy(evaluation.confusion),
            "validation_macro_f1": scores.macro_f1(evaluation.confusion),
        }

    def test(self) -> Scores:
        """Return the scores on the test split, which is opened here and nowhere else."""
        loss, confusion = self._evaluate(load_test_data(self._dataset, self.device))
        return Scores(
            values={
                "test_loss": loss,
                "test_accuracy": scores.accuracy(confusion),
                "test_macro_f1": scores.macro_f1(confusion),
            },
            details={
                "classes": list(self._dataset.classes),
                "per_class": scores.class_report(confusion, self._dataset.classes),
                "confusion_matrix": confusion,
            },
        )

    def cases(self) -> Mapping[str, list[str]]:
        """Return a digest of each image in each split."""
        data = self._data
        test = load_test_data(self._dataset, self.device).images
        splits = {"train": data.pool.images[data.train_indices], "validation": data.validation.images, "test": test}
        return {name: [blake2b(image.tobytes()).hexdigest() for image in images.cpu().numpy()] for name, images in splits.items()}

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        """Return model, optimizer and random generators."""
        tensors = {"parameters": to_state(self._model.parameters)}
        tensors |= {f"optimizer.{name}": to_state(tensor) for name, tensor in self._optimizer.moments().items()}
        tensors["random.order"] = to_state(self._order.get_state())
        tensors["random.dropout"] = to_state(self._dropout.get_state())
        texts = {
            "optimizer": type(self._optimizer).__name__,  # the form: fused and plain Adam differ in the last bits
            "optimizer_steps": str(self._optimizer.steps),
            "device": self.device.type,
        }
        return tensors, texts

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        """Restore what `state_dict` returned, exactly.

        Raises:
            CheckpointError: a part is missing or belongs to another configuration or kind of device.
        """
        if texts.get("device") != self.device.type:
            raise CheckpointError(
                f"the checkpoint was written on device {texts.get('device')!r}, but this is {self.device.type!r}; "
                f"set the option `device` to the first"
            )
        try:
            steps = int(texts["optimizer_steps"])
        except (KeyError, ValueError) as error:
            raise CheckpointError(f"the checkpoint must tell `optimizer_steps`, but has {dict(texts)!r}") from error
        restore("parameters", tensors.get("parameters"), self._model.parameters)
        for name, tensor in self._optimizer.moments().items():
            restore(f"optimizer.{name}", tensors.get(f"optimizer.{name}"), tensor)
        for name, generator in (("random.order", self._order), ("random.dropout", self._dropout)):
            state = generator.get_state()
            restore(name, tensors.get(name), state)
            generator.set_state(state)
        self._optimizer.set_steps(steps)

    def _make_epoch_buffers(self, count: int, classes: int) -> None:
        """Make the log-probabilities of an epoch, (classes, batch) per batch in one vector, and where each image's lie."""
        places, size = torch.arange(count, device=self.device), self._batch_size
        self._batch_starts = places // size * size
        self._batch_positions = places - self._batch_starts
        self._batch_lengths = (count - self._batch_starts).clamp_(max=size)
        self._all_log_probabilities = torch.empty(count * classes, device=self.device)
        chunks = torch.split(self._all_log_probabilities, size * classes)
        self._log_probabilities = [chunk.view(classes, -1) for chunk in chunks]

    def _normalised(self, raw: Tensor, out: Tensor) -> Tensor:
        """Return (raw - mean) / deviation as float32 in `out`."""
        return torch.add(self._shift, out.copy_(raw), alpha=self._scale, out=out)

    @flushed_denormals()
    @torch.inference_mode()
    def _evaluate(self, data: LabelledImages) -> _Evaluation:
        classes = len(self._dataset.classes)
        size = min(EVALUATION_BATCH, len(data))
        buffer = torch.empty(size, self._dataset.pixels, device=self.device)
        loss = torch.zeros((), dtype=torch.float64, device=self.device)
        predictions = []
        for raw, labels in zip(torch.split(data.images, size), torch.split(data.labels, size), strict=True):
            logits = self._model.logits(self._normalised(raw, buffer[: len(raw)]))
            loss -= torch.log_softmax(logits, 0).gather(0, labels.unsqueeze(0)).sum(dtype=torch.float64)
            predictions.append(logits.argmax(0))
        pairs = torch.bincount(data.labels * classes + torch.cat(predictions), minlength=classes * classes)
        return _Evaluation(float(loss) / len(data), pairs.view(classes, classes).tolist())
