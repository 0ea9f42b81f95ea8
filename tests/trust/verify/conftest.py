"""A results folder in which nothing is wrong, and a copy to be damaged, with tables or without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builders.odd_folders import export_to
from builders.results_folders import Results, write_examples


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return a folder with both worked examples, in which nothing is wrong."""
    return write_examples(tmp_path_factory.mktemp("sound") / "results")


@pytest.fixture
def results(sound: Results, tmp_path: Path) -> Path:
    """Return a copy of it, to be damaged."""
    return Path(shutil.copytree(sound.path, tmp_path / "results"))


@pytest.fixture
def tables(results: Path) -> Path:
    """Return the folder of that copy's tables, as CSV."""
    return export_to(results, "csv")
