"""Real MNIST, where TUNEOFF_DATA_DIR holds its files."""

from __future__ import annotations

import os

import pytest

from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp
from tuneoff_workloads.mnist_mlp.catalog import MNIST
from tuneoff_workloads.mnist_mlp.prepare import data_folder

pytestmark = pytest.mark.skipif(not os.environ.get("TUNEOFF_DATA_DIR"), reason="TUNEOFF_DATA_DIR is not set")
SEEDS = TrialSeeds(split=1, trial=2)


@pytest.fixture(scope="module")
def mnist() -> MnistMlp:
    if data_folder(MNIST) is None:
        pytest.skip("TUNEOFF_DATA_DIR has no MNIST files")
    workload = MnistMlp({"dataset": "mnist"})
    workload.prepare()
    workload.limit_threads(1)
    return workload


@pytest.mark.slow
def test_two_epochs_reach_95_percent_on_the_test_images(mnist: MnistMlp) -> None:
    mnist.load({"learning_rate": 1e-3, "batch_size": 128}, SEEDS)
    for epoch in (1, 2):
        mnist.train_epoch(epoch)
    assert mnist.validate()["validation_accuracy"] > 0.95
    scores = mnist.test()
    assert scores.values["test_accuracy"] > 0.95
    assert sum(map(sum, scores.details["confusion_matrix"])) == 10_000


def test_the_normalisation_is_that_of_the_55_000_training_images(mnist: MnistMlp) -> None:
    mnist.load({}, SEEDS)
    split = mnist._training._data
    assert len(split.train_indices) == 55_000
    assert split.mean / 255 == pytest.approx(0.1307, abs=5e-4)
    assert split.deviation / 255 == pytest.approx(0.3081, abs=5e-4)
