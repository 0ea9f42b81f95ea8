"""tuneoff compares hyperparameter-optimization frameworks: one lifecycle, one workload, one result schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from tuneoff.judge.answers.anytime import Curve
    from tuneoff.tell.frames.load import Frames

__version__ = "0.1.0"


def load(results: str | os.PathLike[str]) -> Frames:
    """Return the tables of a results folder as data frames of pandas; each is read when it is first asked for.

    `tuneoff.load("results/x").trials` is one row per trial; `.runs`, `.epochs`, `.metrics`, `.steps`, `.declared` are the
    other tables, `.summary()` says how the trials of each framework and sampler ended.

    Raises:
        ResultsError: it is not a results folder.
        MissingPackageError: pandas or pyarrow is missing.
    """
    from tuneoff.tell.frames.load import load as load_frames

    return load_frames(results)


def curves(results: str | os.PathLike[str]) -> list[Curve]:
    """Return the incumbent of each run of a results folder that ended, as steps on trials, seconds, kWh and USD.

    Raises:
        ResultsError: it is not a results folder, or a file in it is damaged.
    """
    from pathlib import Path

    from tuneoff.judge.answers.anytime import curves as curves_of
    from tuneoff.judge.results import read_results

    return curves_of(read_results(Path(results)))
