"""A folder with answers made by hand, and the page of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from builders.made_answers import made_answers
from builders.page_folders import folder, specs
from tuneoff.judge.results import read_results
from tuneoff.tell.page.build import page
from tuneoff.tell.page.figures import Room, plot
from tuneoff.tell.page.render import render
from tuneoff.tell.plots.drawing import Drawing

Page = Callable[..., str]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" aria-label="a line"><path d="M0 0L9 9"/></svg>'


def drawing(**changes: object) -> Drawing:
    """Return a small plot."""
    fields: dict[str, object] = {
        "name": "line",
        "question": "Which way does it go?",
        "caption": "A line.",
        "alternative": "A line that rises.",
        "svg": SVG,
        "columns": ("x", "y"),
        "rows": tuple((place, place / 3) for place in range(40)),
        **changes,
    }
    return Drawing(**fields)  # type: ignore[arg-type]


def made_page(path: Path, *drawings: Drawing) -> str:
    """Return the page of a results folder, with answers made by hand."""
    results, room = read_results(path), Room()
    return render(page(results, made_answers(results), [plot(one, room) for one in drawings], path / "report"))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of two adapters with twelve seeds."""
    return made_page(folder(tmp_path_factory.mktemp("judged") / "r", specs(["serial", "optuna"], 12)), drawing())


@pytest.fixture(scope="module")
def unjudged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of two adapters with three seeds."""
    return made_page(folder(tmp_path_factory.mktemp("unjudged") / "r", specs(["serial", "optuna"], 3)), drawing())
