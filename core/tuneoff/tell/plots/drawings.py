"""All plots of a results folder, in the order in which a report shows them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from tuneoff.base.packages import install_command, missing_modules
from tuneoff.errors import MissingPackageError
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.results import Results
from tuneoff.tell.plots.drawing import Drawing

ORDER = (
    "anytime",
    "phases",
    "gantt",
    "overhead",
    "paired",
    "ecdf",
    "quality_price",
    "learning",
    "power",
    "faults",
    "regret",
)
NAMES = frozenset(ORDER)  # of their files


def drawings(results: Results, answers: Answers) -> Iterator[Drawing]:
    """Yield the plots for which there are data.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    if missing_modules(("matplotlib",)):
        raise MissingPackageError(f"plots need matplotlib; run: {install_command('tuneoff[report]')}")
    with _quiet():
        from tuneoff.tell.plots.canvas import rules
    from tuneoff.tell.plots.view import View

    view = View.of(results, answers)
    for name in ORDER:
        module = import_module(f"tuneoff.tell.plots.{name}")
        with rules():
            drawing = module.draw(view)
        if drawing is not None:
            yield drawing


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep matplotlib's remarks on its cache off the terminal: that it makes one, or a temporary one that it removes again."""
    log = logging.getLogger("matplotlib")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
