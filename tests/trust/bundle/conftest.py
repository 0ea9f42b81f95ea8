"""A sound results folder, and its bundle."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.results_folders import Results, write_examples


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Return a folder with both worked examples, in which nothing is wrong."""
    return write_examples(tmp_path / "results")
