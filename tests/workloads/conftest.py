"""Fixtures of the workload tests: a cache folder of their own, and digits prepared once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tuneoff.workload import TrialSeeds
from tuneoff_workloads.mnist_mlp import MnistMlp, data
from tuneoff_workloads.mnist_mlp.catalog import DIGITS
from tuneoff_workloads.mnist_mlp.prepare import prepare

SEEDS = TrialSeeds(split=11, trial=22)


@pytest.fixture(scope="session", autouse=True)
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder that all tests share, instead of the user's own."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("TUNEOFF_CACHE_DIR")
    os.environ["TUNEOFF_CACHE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["TUNEOFF_CACHE_DIR"]
    else:
        os.environ["TUNEOFF_CACHE_DIR"] = before


@pytest.fixture(scope="session")
def digits(cache_dir: Path) -> Path:
    """The cache folder of the prepared digits."""
    return prepare(DIGITS)


@pytest.fixture
def own_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Digits prepared in a cache folder of this test alone, which may damage it; nothing is remembered in the process."""
    monkeypatch.setenv("TUNEOFF_CACHE_DIR", str(tmp_path / "cache"))
    data._split.cache_clear()
    return prepare(DIGITS)


@pytest.fixture
def load(digits: Path) -> Callable[..., MnistMlp]:
    """Return a loaded workload: `load(seeds=..., options={...}, learning_rate=...)`."""

    def loaded_workload(seeds: TrialSeeds = SEEDS, options: dict[str, Any] | None = None, **configuration: Any) -> MnistMlp:
        workload = MnistMlp(options or {})
        workload.limit_threads(1)
        workload.load(configuration, seeds)
        return workload

    return loaded_workload
