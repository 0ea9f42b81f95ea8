"""tuneoff compares hyperparameter-optimization frameworks: one lifecycle, one workload, one result schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from tuneoff.tell.frames.load import Frames

__version__ = "0.1.0"


def load(results: str | os.PathLike[str]) -> Frames:
    """Return the tables of a results folder as data frames of pandas; each is read when it is first asked for.

    `tuneoff.load("results/x").trials` is one row per trial; `.runs`, `.epochs`, `.metrics`, `.steps`, `.declared` are the
    other tables, `.summary()` says how the trials of each framework and sampler ended.

    Raises:
        ResultsError: it is no results folder.
        MissingPackageError: pandas or pyarrow is missing.
    """
    from tuneoff.tell.frames.load import load as load_frames

    return load_frames(results)
