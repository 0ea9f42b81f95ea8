"""Drawings of folders that are made in memory, drawn once."""

from __future__ import annotations

import pytest

from plots.drawn import OVER_TASKS, SEVERAL, drawn
from tuneoff.plots.drawing import Drawing


@pytest.fixture(scope="session")
def several() -> dict[str, Drawing]:
    """Three adapters, one of them emulated, ten seeds, a failure and a run that never started."""
    return drawn(SEVERAL)


@pytest.fixture(scope="session")
def over_tasks() -> dict[str, Drawing]:
    """Two adapters on ten tasks with anchors."""
    return drawn(OVER_TASKS)
