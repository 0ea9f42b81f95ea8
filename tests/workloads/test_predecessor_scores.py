"""Each defect of earlier benchmarks' scores and test: the test that catches it and, where it helps, the defect planted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mlp_by_hand import CPU, parts, predictions_by_hand
from tuneoff_workloads.mnist_mlp import MnistMlp
from tuneoff_workloads.mnist_mlp.data import load_test_data
from tuneoff_workloads.mnist_mlp.model import Mlp

Load = Callable[..., MnistMlp]


# 2. The prediction truncated the probabilities to integers, so that nearly every image became class 0.


def test_accuracy_and_loss_are_those_of_the_most_probable_class(load: Load) -> None:
    workload = load(learning_rate=3e-3)
    for epoch in (1, 2, 3):
        workload.train_epoch(epoch)
    metrics = workload.validate()
    validation = parts(workload)._data.validation
    truth = validation.labels.numpy()
    predicted, probabilities = predictions_by_hand(workload, validation.images.numpy())
    assert metrics["validation_accuracy"] == pytest.approx((predicted == truth).mean())
    assert metrics["validation_loss"] == pytest.approx(-np.log(probabilities[range(len(truth)), truth]).mean(), rel=1e-4)
    assert len(set(predicted)) == 10
    # The planted defect: truncated probabilities give another accuracy, so the check above would see it.
    truncated = probabilities.astype(np.int16).argmax(axis=1)
    assert abs((truncated == truth).mean() - metrics["validation_accuracy"]) > 0.1


# 6. The best model was never tested: another one was trained anew.


def test_the_checkpoint_itself_is_tested_without_any_training(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = load(learning_rate=3e-3)
    trained.train_epoch(1)
    best = trained.state_dict()
    best_scores = trained.test()
    for epoch in (2, 3, 4):
        trained.train_epoch(epoch)
    last_scores = trained.test()

    monkeypatch.setattr(Mlp, "train_on", lambda *_: pytest.fail("the test must not train"))
    fresh = load(learning_rate=3e-3)
    fresh.load_state_dict(*best)
    scores = fresh.test()
    assert scores == best_scores
    assert scores != last_scores  # testing the last model instead of the best would be seen
    test = load_test_data(parts(fresh)._dataset, CPU)
    predicted, _ = predictions_by_hand(fresh, test.images.numpy())
    assert scores.values["test_accuracy"] == pytest.approx((predicted == test.labels.numpy()).mean())


# 7. The test's scores were thrown away.


def test_the_test_returns_its_scores_with_report_and_confusion_matrix(load: Load) -> None:
    scores = load().test()
    assert set(scores.values) == {"test_loss", "test_accuracy", "test_macro_f1"}
    confusion = np.array(scores.details["confusion_matrix"])
    assert confusion.sum() == 300
    assert scores.values["test_accuracy"] == np.trace(confusion) / 300
    report = scores.details["per_class"]
    assert list(report) == [str(digit) for digit in range(10)]
    assert all(row["support"] == 30 for row in report.values())
    assert scores.values["test_macro_f1"] == pytest.approx(np.mean([row["f1"] for row in report.values()]))
