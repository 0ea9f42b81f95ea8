"""Scores from a confusion matrix."""

from __future__ import annotations

import pytest

from tuneoff_workloads.mnist_mlp.training import Evaluation


def test_a_worked_example() -> None:
    confusion = [[3, 1], [2, 4]]
    assert Evaluation(0.0, confusion).accuracy == 0.7
    assert Evaluation(0.0, confusion).macro_f1 == pytest.approx((6 / 9 + 8 / 11) / 2)
    assert Evaluation(0.0, confusion).class_report(["a", "b"])["a"] == {
        "precision": 0.6,
        "recall": 0.75,
        "f1": pytest.approx(6 / 9),
        "support": 4,
    }


def test_a_class_that_is_never_predicted_has_f1_zero() -> None:
    assert Evaluation(0.0, [[5, 0], [5, 0]]).macro_f1 == pytest.approx((10 / 15) / 2)


def test_scores_equal_scikit_learn_s() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    truth = [0, 0, 1, 1, 2, 2, 2, 1, 0, 2, 2]
    predicted = [0, 1, 1, 1, 2, 0, 2, 1, 0, 1, 2]
    confusion = metrics.confusion_matrix(truth, predicted).tolist()
    assert Evaluation(0.0, confusion).accuracy == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert Evaluation(0.0, confusion).macro_f1 == pytest.approx(metrics.f1_score(truth, predicted, average="macro"))
    weighted_precision = metrics.precision_score(truth, predicted, average="weighted")
    assert Evaluation(0.0, confusion).macro_f1 != pytest.approx(weighted_precision)
