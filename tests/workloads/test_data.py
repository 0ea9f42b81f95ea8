"""Splits, normalisation, and the fixed test part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneoff_workloads.mnist_mlp.catalog import CATALOG, DIGITS
from tuneoff_workloads.mnist_mlp.data import load_test_data, load_training_data, mean_and_deviation, split_indices
from tuneoff_workloads.mnist_mlp.specification import parse_options

CPU = torch.device("cpu")


def test_digits_parts_are_disjoint_and_together_the_bundled_data(digits: Path) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    bundled = datasets.load_digits()
    expected = sorted(
        (tuple(image), label) for image, label in zip(bundled.data.astype(int).tolist(), bundled.target, strict=True)
    )
    data = load_training_data(parse_options({}), 5, CPU)
    test = load_test_data(DIGITS, CPU)
    parts = [
        (data.pool.images[data.train_indices], data.pool.labels[data.train_indices]),
        (data.validation.images, data.validation.labels),
        (test.images, test.labels),
    ]
    assert [len(labels) for _, labels in parts] == [1200, 297, 300]
    found = sorted(
        (tuple(image), label) for images, labels in parts for image, label in zip(images.tolist(), labels.tolist(), strict=True)
    )
    assert found == expected
    sets = [{tuple(image) for image in images.tolist()} for images, _ in parts]
    assert not sets[0] & sets[1]
    assert not sets[0] & sets[2]
    assert not sets[1] & sets[2]


def test_the_test_part_is_the_same_for_every_split_seed(digits: Path) -> None:
    before = load_test_data(DIGITS, CPU)
    for seed in (1, 2):
        load_training_data(parse_options({}), seed, CPU)
        after = load_test_data(DIGITS, CPU)
        assert torch.equal(before.images, after.images)
    assert torch.bincount(before.labels).tolist() == [30] * 10


@settings(max_examples=50, deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=30, max_size=200),
    size=st.integers(1, 25),
    seed=st.integers(0, 2**31 - 1),
    limit=st.none() | st.integers(1, 40),
)
def test_a_split_is_disjoint_sorted_and_of_the_stated_sizes(labels: list[int], size: int, seed: int, limit: int | None) -> None:
    array = np.array(labels, dtype=np.uint8)
    train, validation = split_indices(array, size, seed, limit)
    assert len(validation) == size
    rest = len(labels) - size
    assert len(train) == (rest if limit is None else min(rest, limit))
    assert not set(train) & set(validation)
    assert set(train) | set(validation) <= set(range(len(labels)))
    assert list(train) == sorted(train)
    assert list(validation) == sorted(validation)
    again = split_indices(array, size, seed, limit)
    assert all(np.array_equal(first, second) for first, second in zip((train, validation), again, strict=True))


def test_a_split_keeps_the_classes_proportions() -> None:
    labels = np.repeat(np.arange(10, dtype=np.uint8), np.arange(100, 200, 10))
    train, validation = split_indices(labels, 145, seed=3, train_limit=290)
    assert np.bincount(labels[validation]).tolist() == [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    assert np.bincount(labels[train]).tolist() == [20, 22, 24, 26, 28, 30, 32, 34, 36, 38]


def test_a_split_is_decided_by_its_seed() -> None:
    labels = np.repeat(np.arange(10, dtype=np.uint8), 20)
    assert not np.array_equal(split_indices(labels, 50, 1, None)[1], split_indices(labels, 50, 2, None)[1])


def test_a_split_never_changes_between_versions() -> None:
    labels = np.repeat(np.arange(3, dtype=np.uint8), 5)
    assert split_indices(labels, 6, 42, 6)[1].tolist() == [0, 2, 5, 9, 11, 13]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=200))
def test_mean_and_deviation_equal_numpy_s(values: list[int]) -> None:
    mean, deviation = mean_and_deviation(torch.tensor(values, dtype=torch.uint8).unsqueeze(1), torch.arange(len(values)))
    assert mean == pytest.approx(np.mean(values))
    assert deviation == pytest.approx(np.std(values) or 1.0)


def test_a_second_load_in_a_process_returns_the_same_tensors(digits: Path) -> None:
    options = parse_options({})
    first = load_training_data(options, 7, CPU)
    assert load_training_data(options, 7, CPU) is first
    assert load_training_data(options, 8, CPU) is not first


def test_versions_of_the_data_sets_differ() -> None:
    assert len({dataset.version for dataset in CATALOG.values()}) == 3
