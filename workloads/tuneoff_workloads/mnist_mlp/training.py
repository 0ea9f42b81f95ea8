"""Training, validation and test of one configuration: everything of the workload that needs torch."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import blake2b
from time import monotonic_ns
from typing import Any, NamedTuple

import numpy.random  # noqa: F401 (else the first split of a process loads it, in a trial's load time)
import torch
from torch import Tensor

from tuneoff.base.identity import derive_seed
from tuneoff.base.phases import PHASES
from tuneoff.errors import CheckpointError, ExperimentError
from tuneoff.workload import Scores, StateTensor, TrialSeeds, items, phase
from tuneoff_workloads.mnist_mlp.data import LabelledImages, load_test_data, load_training_data
from tuneoff_workloads.mnist_mlp.model import Mlp
from tuneoff_workloads.mnist_mlp.optimizer import OPTIMIZERS
from tuneoff_workloads.mnist_mlp.specification import Device, Hyperparameters, Options

EVALUATION_BATCH = 1024  # larger ones leave the cache
TIMED_BATCH = 16  # where phases are timed, every so many-th batch is, for all: to time it takes 3 us, a batch 50 to 500
_SMALLEST_NORMAL, _TWO = sys.float_info.min, 2.0  # two names, so that the quotient is computed when it is asked for
_DTYPES = {torch.float32: "F32", torch.uint8: "U8"}


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
    if device != "cpu" and torch.cuda.is_available():
        return torch.device("cuda")
    if device == "cuda":
        raise ExperimentError("mnist_mlp: `device: cuda` needs a CUDA device, but torch finds none; use cpu or auto")
    return torch.device("cpu")


def _read(wait: Callable[[], None] | None, readings: list[int]) -> None:
    """Append the clock in ns, once a GPU, which works on its own, has done what it was given: `wait` waits for it."""
    if wait is not None:
        wait()
    readings.append(monotonic_ns())


class Evaluation(NamedTuple):
    """How a model does on some images."""

    loss: float  # mean cross-entropy
    confusion: Sequence[Sequence[int]]  # [true class][predicted class] -> number of images

    @property
    def accuracy(self) -> float:
        """The fraction of images whose predicted class is the true one."""
        total = sum(map(sum, self.confusion))
        return sum(row[index] for index, row in enumerate(self.confusion)) / total if total else 0.0

    @property
    def macro_f1(self) -> float:
        """The unweighted mean of the classes' F1."""
        return sum(f1 for _, _, f1 in self._ratios()) / len(self.confusion)

    def class_report(self, classes: Sequence[str]) -> dict[str, Any]:
        """Return precision, recall, F1 and support (number of images) per class name, as JSON values."""
        return {
            name: {"precision": precision, "recall": recall, "f1": f1, "support": sum(row)}
            for name, row, (precision, recall, f1) in zip(classes, self.confusion, self._ratios(), strict=True)
        }

    def _ratios(self) -> Iterator[tuple[float, float, float]]:
        """Yield precision, recall and F1 per class; a ratio with denominator 0 is 0."""
        for index, (row, column) in enumerate(zip(self.confusion, zip(*self.confusion, strict=True), strict=True)):
            hits, actual, predicted = row[index], sum(row), sum(column)
            counts = (hits, predicted), (hits, actual), (2 * hits, predicted + actual)
            precision, recall, f1 = (part / whole if whole else 0.0 for part, whole in counts)
            yield precision, recall, f1


class MlpTraining:
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
        pixels, classes, count = options.dataset.pixels, len(options.dataset.classes), len(self._data.train_indices)
        self._model = Mlp(
            sizes=(pixels, *hyperparameters.hidden_widths, classes),
            activation=hyperparameters.activation,
            dropout=hyperparameters.dropout,
            seed=derive_seed("initialization", seeds.trial),
            device=self.device,
        )
        self._optimizer = OPTIMIZERS[hyperparameters.optimizer](hyperparameters, self._model.parameters, self._model.gradients)
        self._order = torch.Generator().manual_seed(derive_seed("order", seeds.trial))
        self._dropout = torch.Generator(self.device).manual_seed(derive_seed("dropout", seeds.trial))

        size = self._batch_size = min(hyperparameters.batch_size, count)
        self._raw = torch.empty(size, pixels, dtype=torch.uint8, device=self.device)
        self._images = torch.empty(size, pixels, device=self.device)
        # The log-probabilities of an epoch, (classes, batch) per batch in one vector, and where each image's lie.
        self._log_probabilities = torch.empty(count * classes, device=self.device)
        chunks = torch.split(self._log_probabilities, size * classes)
        self._batch_log_probabilities = [chunk.view(classes, -1) for chunk in chunks]
        position = torch.arange(count, device=self.device)
        self._batch_starts = position // size * size
        self._batch_positions = position - self._batch_starts
        self._batch_lengths = (count - self._batch_starts).clamp_(max=size)
        self._has_phases = options.phases
        self._wait = functools.partial(torch.cuda.synchronize, self.device) if self.device.type == "cuda" else None

    @flushed_denormals()
    @torch.inference_mode()
    def train_epoch(self) -> Mapping[str, float]:
        """Train once on every image of the training split, in a new random order."""
        pool, size, classes = self._data.pool, self._batch_size, len(self._dataset.classes)
        permutation = torch.randperm(len(self._data.train_indices), generator=self._order).to(self.device)
        indices = self._data.train_indices.index_select(0, permutation)
        targets = pool.labels.index_select(0, indices) * self._batch_lengths + self._batch_positions
        batches = zip(torch.split(indices, size), torch.split(targets, size), self._batch_log_probabilities, strict=True)
        readings: list[int] = []  # of a timed batch: when it began, and when each phase had ended
        first_timed = min(TIMED_BATCH // 2, (len(indices) - 1) // size)  # not the very first, which finds cold caches
        began_ns = monotonic_ns()
        for number, (batch_indices, batch_targets, log_probabilities) in enumerate(batches):
            lap = None
            if self._has_phases and number % TIMED_BATCH == first_timed:
                lap = functools.partial(_read, self._wait, readings)
                lap()
            raw, images = self._raw, self._images
            if len(batch_indices) < size:
                raw, images = raw[: len(batch_indices)], images[: len(batch_indices)]
            torch.index_select(pool.images, 0, batch_indices, out=raw)
            self._normalised(raw, images)
            if lap is not None:
                lap()
            self._model.train_on(images, batch_targets, log_probabilities, self._dropout, lap)
            self._optimizer.step()
            if lap is not None:
                lap()
        if readings:
            _read(self._wait, readings)
            every_ns = readings.pop() - began_ns
            several = len(readings) > len(PHASES)
            spent = [sum(readings[start :: len(PHASES)]) for start in range(len(PHASES))] if several else readings
            for name, (begin, end) in zip(PHASES, itertools.pairwise(spent), strict=False):  # the last one is `validate`
                phase(name).ns = (end - begin) * every_ns // (spent[-1] - spent[0])
        likelihoods = self._log_probabilities.index_select(0, targets + self._batch_starts * classes)
        train_loss = -float(likelihoods.mean())  # on a GPU it waits until all is done
        items(len(indices))
        return {"train_loss": train_loss}

    def validate(self) -> Mapping[str, float]:
        """Return loss, accuracy and macro-F1 on the validation split."""
        with phase("validate") if self._has_phases else nullcontext():
            return self._scores("validation", self._evaluate(self._data.validation))

    def test(self) -> Scores:
        """Return the scores on the test split, which is opened here and nowhere else."""
        evaluation = self._evaluate(load_test_data(self._dataset, self.device))
        details = {
            "classes": list(self._dataset.classes),
            "per_class": evaluation.class_report(self._dataset.classes),
            "confusion_matrix": evaluation.confusion,
        }
        return Scores(values=self._scores("test", evaluation), details=details)

    def cases(self) -> Mapping[str, list[str]]:
        """Return a digest of each image in each split."""
        data = self._data
        test = load_test_data(self._dataset, self.device).images
        splits = {"train": data.pool.images[data.train_indices], "validation": data.validation.images, "test": test}
        return {name: [blake2b(image.tobytes()).hexdigest() for image in images.cpu().numpy()] for name, images in splits.items()}

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        """Return model, optimizer and random generators, as copies."""
        tensors = self._float_state() | {name: generator.get_state() for name, generator in self._generators().items()}
        state = {}
        for name, tensor in tensors.items():
            values = tensor.detach().cpu().contiguous()
            # little-endian, as every machine that torch supports here
            state[name] = StateTensor(dtype=_DTYPES[values.dtype], shape=tuple(values.shape), data=values.numpy().tobytes())
        return state, {"device": self.device.type}

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
        for name, tensor in self._float_state().items():
            _restore(name, tensors.get(name), tensor)
        for name, generator in self._generators().items():
            state = generator.get_state()
            _restore(name, tensors.get(name), state)
            generator.set_state(state)

    def _float_state(self) -> dict[str, Tensor]:
        optimizer = {f"optimizer.{name}": tensor for name, tensor in self._optimizer.state().items()}
        return {"parameters": self._model.parameters, **optimizer}

    def _generators(self) -> dict[str, torch.Generator]:
        return {"random.order": self._order, "random.dropout": self._dropout}

    @staticmethod
    def _scores(split: str, evaluation: Evaluation) -> dict[str, float]:
        return {
            f"{split}_loss": evaluation.loss,
            f"{split}_accuracy": evaluation.accuracy,
            f"{split}_macro_f1": evaluation.macro_f1,
        }

    def _normalised(self, raw: Tensor, out: Tensor) -> Tensor:
        """Return (raw - mean) / deviation as float32 in `out`."""
        return torch.add(self._shift, out.copy_(raw), alpha=self._scale, out=out)

    @flushed_denormals()
    @torch.inference_mode()
    def _evaluate(self, data: LabelledImages) -> Evaluation:
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
        return Evaluation(float(loss) / len(data), pairs.view(classes, classes).tolist())


def _restore(name: str, state: StateTensor | None, target: Tensor) -> None:
    """Write saved values into `target`.

    Raises:
        CheckpointError: there are none, or they have another type or shape.
    """
    if state is None:
        raise CheckpointError(f"the checkpoint has no tensor {name!r}; it was written by another workload or version")
    if state.dtype != _DTYPES[target.dtype] or tuple(state.shape) != tuple(target.shape):
        raise CheckpointError(
            f"tensor {name!r} of the checkpoint must be {_DTYPES[target.dtype]} {tuple(target.shape)}, "
            f"but is {state.dtype} {tuple(state.shape)}; it belongs to another configuration"
        )
    target.copy_(torch.frombuffer(bytearray(state.data), dtype=target.dtype).view(target.shape))
