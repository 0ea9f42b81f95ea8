"""Live states made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuneoff.run.progress import LiveRun
from tuneoff.tell.live.state import Activity, Current, LiveState, SeedCell, SeedRow, cells_of
from tuneoff.tell.live.terminal import SIGNS

LIVE = LiveRun(
    run_id="serial0",
    step="trial",
    seconds=10.0,
    trials=20,
    epochs_per_trial=3,
    running=2,
    completed=3,
    pruned=1,
    failed=1,
    incumbent=0.97531,
)
CURRENT = Current(
    run_id="serial0", execution_id="serial0-1", name="serial seed 0", position=3, total=9, metric="accuracy", live=LIVE
)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def row(text: str, statuses: str, adapter: str = "serial") -> SeedRow:
    """Return a row by its signs; a blank is not a run."""
    of = {sign: status for status, sign in SIGNS.items()}
    cells = [
        SeedCell(run_id=f"{text}{seed}", name=text, seed=seed, status=of[sign]) if sign in of else None
        for seed, sign in enumerate(statuses)
    ]
    return SeedRow(text=text, adapter=adapter, cells=tuple(cells))


def state(signs: Sequence[str] = ("##F>.", "#T-I."), **changes: Any) -> LiveState:
    rows = tuple(row(name, statuses, name) for name, statuses in zip(("serial", "optuna"), signs, strict=True))
    values: dict[str, Any] = {
        "name": "digits",
        "plan_id": "p1",
        "folder": "results/digits",
        "file": "digits.yaml",
        "resume_command": "tuneoff compare digits.yaml --resume --output results/digits",
        "activity": Activity.WORKING,
        "seeds": (0, 1, 2, 3, 4),
        "rows": rows,
        "counts": {status: sum(cell.status == status for cell in cells_of(rows)) for status in SIGNS},
        "current": CURRENT,
        "seconds_left": 200.0,
        "pid": 12,
    }
    return LiveState(**{**values, **changes})
