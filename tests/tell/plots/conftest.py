"""Drawings of folders that are made in memory, drawn once."""

from __future__ import annotations

import pytest

from tell.plots.drawn import OVER_TASKS, SEVERAL, draw, drawn, view_of
from tuneoff.tell.plots.drawing import Drawing


@pytest.fixture(scope="session")
def several() -> dict[str, Drawing]:
    """Three adapters, one of them emulated, ten seeds, a failure and a run that never started."""
    return drawn(SEVERAL)


@pytest.fixture(scope="session")
def over_tasks() -> dict[str, Drawing]:
    """What is drawn over tasks of two adapters on ten tasks with anchors."""
    view = view_of(OVER_TASKS)
    found = [draw(name, view) for name in ("regret",)]
    return {drawing.name: drawing for drawing in found if drawing is not None}
