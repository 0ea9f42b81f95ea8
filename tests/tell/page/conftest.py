"""Small folders, and the page of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.page_folders import folder, specs
from tuneoff.judge.choice.choose import answered
from tuneoff.judge.results import read_results
from tuneoff.tell.page.report import composed


def made_page(path: Path) -> str:
    """Return the page of a results folder."""
    return composed(answered(read_results(path)), path / "report")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of two adapters with twelve seeds."""
    return made_page(folder(tmp_path_factory.mktemp("judged") / "r", specs(["serial", "optuna"], 12)))


@pytest.fixture(scope="module")
def unjudged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of two adapters with three seeds."""
    return made_page(folder(tmp_path_factory.mktemp("unjudged") / "r", specs(["serial", "optuna"], 3)))
