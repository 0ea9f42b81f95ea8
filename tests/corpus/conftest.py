"""The recorded results folders, unpacked when a test first asks for one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus.figures import unpack

Recorded = Callable[[str], Path]


LENGTH = 120  # of the path to the folders: where lines are broken depends on it


def padded(folder: Path) -> Path:
    """Return a new folder in a folder whose path has always the same length."""
    path = folder / ("c" * (LENGTH - len(str(folder)) - 1))
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Return a function that gives the folder of a case; no test changes it."""
    place = padded(tmp_path_factory.mktemp("corpus"))
    return functools.cache(lambda name: unpack(name, place))
