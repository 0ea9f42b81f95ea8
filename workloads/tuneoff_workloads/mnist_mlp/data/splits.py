"""The split of the training part into training and validation images. The test images are in files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Integers = np.ndarray[Any, np.dtype[Any]]


def split_indices(labels: Integers, validation_size: int, seed: int, train_limit: int | None) -> tuple[Integers, Integers]:
    """Return the indices of training and validation images: disjoint, ascending, both with the classes' proportions.

    `seed` decides which images are drawn. With `train_limit`, so many of the training images, drawn likewise.
    """
    import numpy as np

    # RandomState, because numpy promises that its stream never changes between versions (NEP 19).
    order = np.random.RandomState(seed % 2**32).permutation(len(labels))
    validation = _draw(labels, order, validation_size)
    train = order[~np.isin(order, validation)]
    if train_limit is not None and train_limit < len(train):
        train = _draw(labels, train, train_limit)
    return np.sort(train), np.sort(validation)


def _draw(labels: Integers, order: Integers, size: int) -> Integers:
    """Return the first images of each class in `order`, `size` in all, shared among classes by largest remainder."""
    import numpy as np

    ordered_labels = labels[order]
    counts = np.bincount(ordered_labels)
    shares = counts * size // len(order)
    remainders = counts * size % len(order)
    for label in np.argsort(-remainders, kind="stable")[: size - int(shares.sum())]:
        shares[label] += 1
    return np.concatenate([order[ordered_labels == label][:share] for label, share in enumerate(shares)])
