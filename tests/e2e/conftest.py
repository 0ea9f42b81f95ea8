"""Whatever a test here does to runs (kills, resumes, limits, faults): their histories stay sound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneoff.record.store import FILE_NAME, RUNS, read_run
from tuneoff.trust.history_check.rules import check_run


@pytest.fixture(autouse=True)
def sound_histories(tmp_path: Path) -> Iterator[None]:
    """Hold every run that the test left in its folder to the rules of a sound history."""
    yield
    folders = [path.parent for path in tmp_path.rglob(f"{RUNS}/*/*/{FILE_NAME}")]
    breaches = {folder: check_run(folder, read_run(folder)) for folder in folders}
    drawn = ["\n".join([str(folder), one.line, *one.drawing()]) for folder, found in breaches.items() for one in found]
    assert drawn == []
