"""Where does the time of a run go?"""

from __future__ import annotations

from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.stacked import Stack, draw_stack
from tuneoff.tell.plots.view import View

STACK = Stack(
    name="phases",
    question="Where does the time of a run go?",
    caption=(
        "Medians over seeds of the phases that follow each other in a run, and below each bar the whole time of every run. "
        "Bars of medians need not end at the median of the whole. tuneoff's own collection of metrics is left out."
    ),
    parts={
        "deploy": "time.deploy",
        "setup": "time.setup",
        "trials": "time.trial",
        "result collection": "time.result_collection",
        "test": "time.test",
        "un-deploy": "time.undeploy",
    },
    total="time.jct_without_metric_collection",
    unit="s",
    factor=1e-3,
)


def draw(view: View) -> Drawing | None:
    """Draw the phases of each adapter as a stacked bar."""
    return draw_stack(view, STACK)
