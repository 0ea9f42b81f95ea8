"""Measure epochs of mnist_mlp with and without phases, and against a loop that counts for itself: `... inside_probe JSON`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch

from benchmarks.speed.statistics import side_by_side
from tuneoff.base import phases
from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp
from tuneoff_workloads.mnist_mlp.training import MlpTraining, flushed_denormals


def loaded(dataset: str, *, has_phases: bool = False) -> MnistMlp:
    """Return the workload with its default configuration, as a trial loads it."""
    workload = MnistMlp({"dataset": dataset, "phases": has_phases})
    workload.prepare()
    workload.limit_threads(1)
    workload.load({}, TrialSeeds(split=1, trial=2))
    return workload


def epoch_cpu(workload: MnistMlp, *, has_phases: bool) -> Callable[[], float]:
    """Return a function that trains and validates an epoch, and returns its CPU seconds: others on the machine cost none."""

    def measure() -> float:
        workload._training._has_phases = has_phases  # the same tensors on both sides
        phases.begin_epoch(time.monotonic_ns())
        began = time.process_time()
        workload.train_epoch(1)
        workload.validate()
        return time.process_time() - began

    return measure


def counted(workload: MnistMlp) -> Callable[[], float]:
    """Return a function that trains an epoch, and returns its items over its CPU seconds, counted as a trial counts them."""

    def measure() -> float:
        phases.begin_epoch(time.monotonic_ns())
        began = time.process_time()
        workload.train_epoch(1)
        return (phases.counted_items() or 0) / (time.process_time() - began)

    return measure


def bare(training: MlpTraining) -> float:
    """Train an epoch by its steps alone, in a loop that counts its images; return them over its CPU seconds."""
    with flushed_denormals(), torch.inference_mode():
        return _bare(training)


def _bare(training: MlpTraining) -> float:
    count, size, model = 0, training._batch_size, training._model
    began = time.process_time()
    permutation = torch.randperm(len(training._data.train_indices), generator=training._order)
    indices = training._data.train_indices.index_select(0, permutation)
    labels = training._data.pool.labels.index_select(0, indices)
    targets = labels * training._batch_lengths + training._batch_positions
    for number, batch in enumerate(torch.split(indices, size)):
        raw, images = training._raw[: len(batch)], training._images[: len(batch)]
        torch.index_select(training._data.pool.images, 0, batch, out=raw)
        goals = targets[number * size : number * size + len(batch)]
        model.train_on(training._normalised(raw, images), goals, training._batch_log_probabilities[number], training._dropout)
        training._optimizer.step()
        count += len(batch)
    likelihoods = training._log_probabilities.index_select(0, targets + training._batch_starts * len(training._dataset.classes))
    float(likelihoods.mean())  # the training's own loss, which belongs to it
    return count / (time.process_time() - began)


def main(dataset: str, rounds: int) -> None:
    torch.set_num_threads(1)
    workload = loaded(dataset)
    training = workload._training
    assert training is not None
    with_phases: dict[str, Callable[[], float]] = {
        "on": epoch_cpu(workload, has_phases=True),
        "off": epoch_cpu(workload, has_phases=False),
        "off_again": epoch_cpu(workload, has_phases=False),
    }
    with_items: dict[str, Callable[[], float]] = {
        "counted": counted(workload),
        "bare": lambda: bare(training),
        "bare_again": lambda: bare(training),
    }
    speeds: dict[str, list[float]] = {}
    for sides in (with_phases, with_items):  # apart: what an epoch leaves in the caches is alike for each side
        for measure in sides.values():
            measure()  # warm-up
        speeds |= side_by_side(sides, rounds)
    print(json.dumps(speeds))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
