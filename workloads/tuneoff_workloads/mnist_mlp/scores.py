"""Scores of a classifier from its confusion matrix: accuracy, macro-F1, per-class report. Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Confusion = Sequence[Sequence[int]]  # [true class][predicted class] -> number of images


def accuracy(confusion: Confusion) -> float:
    """Return the fraction of images whose predicted class is the true one."""
    total = sum(map(sum, confusion))
    return sum(row[index] for index, row in enumerate(confusion)) / total if total else 0.0


def precision_recall_f1(confusion: Confusion) -> list[tuple[float, float, float]]:
    """Return precision, recall and F1 per class; a ratio with denominator 0 is 0."""
    predicted = [sum(column) for column in zip(*confusion, strict=True)]
    result = []
    for index, row in enumerate(confusion):
        hits, actual = row[index], sum(row)
        precision = hits / predicted[index] if predicted[index] else 0.0
        recall = hits / actual if actual else 0.0
        both = predicted[index] + actual
        result.append((precision, recall, 2 * hits / both if both else 0.0))
    return result


def macro_f1(confusion: Confusion) -> float:
    """Return the unweighted mean of the classes' F1."""
    return sum(f1 for _, _, f1 in precision_recall_f1(confusion)) / len(confusion)


def class_report(confusion: Confusion, classes: Sequence[str]) -> dict[str, Any]:
    """Return precision, recall, F1 and support (number of images) per class name, as JSON values."""
    ratios = precision_recall_f1(confusion)
    return {
        name: {"precision": precision, "recall": recall, "f1": f1, "support": sum(row)}
        for name, row, (precision, recall, f1) in zip(classes, confusion, ratios, strict=True)
    }
