"""Folders made in memory, and their drawings."""

from __future__ import annotations

from importlib import import_module

from builders.made_curves import Made, made_results
from tuneoff.judge.answers.compute import answers
from tuneoff.tell.plots.canvas import rules
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.drawings import drawings
from tuneoff.tell.plots.view import View

TASKS = tuple(f"task-{number}" for number in range(10))
ANCHORS = {task: {"random_search": 0.75, "best_known": 0.95, "source": "made"} for task in TASKS}
SEVERAL = Made(
    adapters=("serial", "optuna", "katib"),
    seeds=range(10),
    emulated=("katib",),
    failed=(("optuna", 1),),
    missing=(("serial", 9),),
    repeated=True,
)
OVER_TASKS = Made(seeds=(0, 1, 2), tasks=TASKS, trials=3, epochs=2, analysis={"confidence": 0.95, "anchors": ANCHORS})


def drawn(made: Made) -> dict[str, Drawing]:
    """Return the drawings of a folder by name."""
    results = made_results(made)
    return {drawing.name: drawing for drawing in drawings(results, answers(results))}


def view_of(made: Made) -> View:
    """Return what plots are drawn from."""
    results = made_results(made)
    return View.of(results, answers(results))


def draw(name: str, made: Made | View) -> Drawing | None:
    """Return one drawing by the name of its module."""
    with rules():
        found = import_module(f"tuneoff.tell.plots.{name}").draw(made if isinstance(made, View) else view_of(made))
    assert found is None or isinstance(found, Drawing)
    return found
