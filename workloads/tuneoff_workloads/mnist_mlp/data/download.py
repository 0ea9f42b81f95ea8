"""Download of a data set through torchvision, in a process of its own: neither torch nor torchvision stays behind."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from pathlib import Path

from tuneoff.base.commands import install_command
from tuneoff.base.processes import run_to_end
from tuneoff.errors import DataError, MissingPackageError
from tuneoff_workloads.mnist_mlp.data.catalog import Dataset

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 600.0
_SCRIPT = "import sys, torchvision.datasets as d; getattr(d, sys.argv[1])(sys.argv[2], download=True)"


def download(dataset: Dataset, target: Path, timeout_seconds: float = TIMEOUT_SECONDS) -> Path:
    """Download the four files of `dataset` under `target` and return their folder; the content is not yet checked.

    Raises:
        MissingPackageError: torchvision is not installed.
        DataError: the download failed or took too long.
    """
    if dataset.torchvision_class is None:
        raise DataError(f"{dataset.name} cannot be downloaded; it comes with scikit-learn")
    if importlib.util.find_spec("torchvision") is None:
        raise MissingPackageError(
            f"downloading {dataset.name} needs the torchvision package, or else TUNEOFF_DATA_DIR with its four files; "
            f"run: {install_command('torchvision')}"
        )
    log.info("downloading %s to %s", dataset.name, target)
    command = [sys.executable, "-c", _SCRIPT, dataset.torchvision_class, str(target)]
    try:
        done = run_to_end(command, timeout_seconds, environment={**os.environ, "OMP_NUM_THREADS": "1"})
    except TimeoutError as error:
        raise DataError(_failure(dataset, f"no end after {timeout_seconds:g} s")) from error
    if done.code != 0:
        lines = [line.strip() for line in done.errors.splitlines() if line.strip()]
        raise DataError(_failure(dataset, lines[-1] if lines else f"exit code {done.code}"))
    return target / dataset.torchvision_class / "raw"


def _failure(dataset: Dataset, reason: str) -> str:
    return (
        f"{dataset.name} is neither in TUNEOFF_DATA_DIR nor in the cache, and its download failed ({reason}); "
        f"put its four IDX files into a folder and set TUNEOFF_DATA_DIR to it"
    )
