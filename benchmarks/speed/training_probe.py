"""Measure training speeds in images per second in a process of its own: `python -m benchmarks.speed.training_probe JSON`."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable

import torch

from benchmarks.speed.naive_training import NaiveTraining
from benchmarks.speed.statistics import interleaved
from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp

TRAINED, VALIDATED = 55_000, 5_000
PIXELS, CLASSES = 784, 10
THREADS = 1


def products(width: int, batch: int) -> Callable[[], None]:
    """Return a function that does the matrix products of an epoch's steps and nothing else."""
    sizes = (PIXELS, width, width, CLASSES)
    weights = [torch.randn(high, low) for low, high in itertools.pairwise(sizes)]
    inputs = [torch.randn(batch, size) for size in sizes]  # inputs[0]: the images, inputs[-1]: the logits
    gradients = [torch.randn(batch, size) for size in sizes]  # of the loss by `inputs`
    weight_gradients = [torch.empty_like(weight) for weight in weights]
    layers = range(len(weights))

    @torch.inference_mode()
    def run() -> None:
        for _ in range(TRAINED // batch):
            for layer in layers:
                torch.mm(inputs[layer], weights[layer].t(), out=inputs[layer + 1])
            for layer in reversed(layers):
                torch.mm(gradients[layer + 1].t(), inputs[layer], out=weight_gradients[layer])
                if layer > 0:  # nobody needs the gradient by the images
                    torch.mm(gradients[layer + 1], weights[layer], out=gradients[layer])

    for tensor in (*weights, *inputs, *gradients):
        tensor.mul_(0.01)  # products of products stay finite
    return run


def shipped(width: int, batch: int) -> Callable[[], None]:
    """Return a function that trains one epoch of the workload, called as a trial calls it."""
    workload = MnistMlp({"dataset": "mnist", "validation_size": VALIDATED})
    workload.prepare()
    workload.limit_threads(THREADS)
    configuration = {"learning_rate": 1e-3, "batch_size": batch, "hidden_layers": 2, "hidden_width": width}
    workload.load(configuration, TrialSeeds(split=1, trial=2))
    epoch = 0

    def run() -> None:
        nonlocal epoch
        epoch += 1
        workload.train_epoch(epoch)

    return run


def timed(run: Callable[[], None], images: int) -> Callable[[], float]:
    """Return a function that runs once and returns images per second."""

    def measure() -> float:
        started = time.perf_counter()
        run()
        return images / (time.perf_counter() - started)

    return measure


def main(width: int, batch: int, rounds: int, naive: bool) -> None:
    torch.set_num_threads(THREADS)
    limit = products(width, batch)
    in_whole_batches = TRAINED // batch * batch
    sides = {
        "shipped": timed(shipped(width, batch), TRAINED),
        "limit": timed(limit, in_whole_batches),
        "limit_again": timed(limit, in_whole_batches),
    }
    if naive:
        loop = NaiveTraining(width, batch)
        sides["naive"] = timed(loop.train, loop.images)
    for measure in sides.values():
        measure()  # warm-up
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _, name, speed in interleaved(sides, rounds):
        found[name].append(speed)
    print(json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
