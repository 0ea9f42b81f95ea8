"""Results folders without a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.odd_folders import write_odd
from builders.results_folders import write_examples


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Example A with two seeds, and example B; all done."""
    return write_examples(tmp_path / "results", seeds=(0, 1)).path


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    return write_odd(tmp_path)
