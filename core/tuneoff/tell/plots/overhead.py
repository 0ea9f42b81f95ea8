"""What does a framework add to each trial, and where?"""

from __future__ import annotations

from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.stacked import Stack, draw_stack
from tuneoff.tell.plots.view import View

STACK = Stack(
    name="overhead",
    question="What does a framework add to each trial, and where?",
    caption=(
        "Medians over seeds of the time per trial in which a worker could have trained and did not, by what kept it from it; "
        "below each bar the sum of every run."
    ),
    parts={
        "process start": "overhead.process_start",
        "between trials": "overhead.between",
        "dispatch": "overhead.dispatch",
        "report": "overhead.report",
        "exit": "overhead.exit",
        "vacant": "overhead.vacant",
    },
    total="overhead.per_trial",
    unit="ms",
    factor=1.0,
)


def draw(view: View) -> Drawing | None:
    """Draw the stages of the overhead of each adapter as a stacked bar."""
    return draw_stack(view, STACK)
