"""Measure training speeds in images per second in a process of its own: `python -m benchmarks.speed.training_probe JSON`."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable

import torch

from benchmarks.speed.naive_training import NaiveTraining
from benchmarks.speed.statistics import estimate, side_by_side
from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp

TRAINED, VALIDATED = 55_000, 5_000
PIXELS, CLASSES = 784, 10
THREADS = 1


def products(width: int, batch: int, weights_by_inputs: bool, activations_by_units: bool) -> Callable[[], None]:
    """Return a function that does the matrix products of an epoch's steps and nothing else.

    `weights_by_inputs`, `activations_by_units`: how weights and activations lie in memory; the images come row by row.
    """
    sizes = (PIXELS, width, width, CLASSES)
    # logical shapes: weights (inputs, units); inputs[0]: the images (batch, pixels), inputs[-1]: the logits (batch, classes)
    weights = [_matrix(low, high, transposed=not weights_by_inputs) for low, high in itertools.pairwise(sizes)]
    inputs = [_matrix(batch, size, transposed=activations_by_units and size != PIXELS) for size in sizes]
    gradients = [_matrix(batch, size, transposed=activations_by_units and size != PIXELS) for size in sizes]  # by `inputs`
    weight_gradients = [torch.empty_like(weight) for weight in weights]
    layers = range(len(weights))

    @torch.inference_mode()
    def run() -> None:
        for _ in range(TRAINED // batch):
            for layer in layers:
                torch.mm(inputs[layer], weights[layer], out=inputs[layer + 1])
            for layer in reversed(layers):
                torch.mm(inputs[layer].t(), gradients[layer + 1], out=weight_gradients[layer])
                if layer > 0:  # nobody needs the gradient by the images
                    torch.mm(gradients[layer + 1], weights[layer].t(), out=gradients[layer])

    return run


def _matrix(rows: int, columns: int, *, transposed: bool) -> torch.Tensor:
    """Return small random numbers (rows, columns), so that products of products stay finite; `transposed`: column by column."""
    shape = (columns, rows) if transposed else (rows, columns)
    matrix = torch.randn(shape).mul_(0.01)
    return matrix.t() if transposed else matrix


def fastest_products(width: int, batch: int) -> Callable[[], None]:
    """Return the products in the memory layout in which they are fastest here: the strictest limit."""
    layouts = list(itertools.product((False, True), repeat=2))
    runs = {str(layout): products(width, batch, *layout) for layout in layouts}
    taken = side_by_side({name: timed(run, TRAINED) for name, run in runs.items()}, 5)
    return runs[max(taken, key=lambda name: estimate(taken[name]).value)]


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
    limit = fastest_products(width, batch)
    in_whole_batches = TRAINED // batch * batch
    sides = {
        "shipped": timed(shipped(width, batch), TRAINED),
        "limit": timed(limit, in_whole_batches),
        "limit_again": timed(limit, in_whole_batches),
        "linear": timed(products(width, batch, weights_by_inputs=False, activations_by_units=False), in_whole_batches),
    }
    if naive:
        loop = NaiveTraining(width, batch)
        sides["naive"] = timed(loop.train, loop.images)
    for measure in sides.values():
        measure()  # warm-up
    print(json.dumps(side_by_side(sides, rounds)))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
