"""The step between two values that an accuracy can have: one case of the test split."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tuneoff.answers.cells import Cell
from tuneoff.answers.results import Results
from tuneoff.files import read_regular
from tuneoff.lifecycle.score_best import RESULT

LARGEST = 50_000_000  # bytes


def grid_step(results: Results, cells: Sequence[Cell]) -> float:
    """Return 1 / the number of cases that the test of a scope counted, 0 where the objective is no accuracy or nothing tells."""
    if "accuracy" not in cells[0].spec.experiment.objective.metric:
        return 0.0
    record = next((run.record for cell in cells for run in cell.runs if run.is_done), None)
    if record is None:
        return 0.0
    try:
        told = json.loads(read_regular(results.folder / results.run_folder(record) / RESULT, LARGEST))
        size = sum(int(count) for row in told["details"]["confusion_matrix"] for count in row)
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return 0.0
    return 1 / size if size > 0 else 0.0
