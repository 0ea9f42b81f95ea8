"""What becomes of a run when something goes wrong: the fault matrix that may lie beside the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tuneoff.base.files import read_json
from tuneoff.base.format import MISSING
from tuneoff.errors import ResultsError
from tuneoff.judge.faults import FAULTS, TITLES

FILE = "faults.json"  # what `tuneoff faults --json` wrote, beside the plan
KEYS = {"adapter", "setting", "fault", "outcome"}
SERIOUS = frozenset(("hung until the limit", "silently wrong"))


class FaultCell(NamedTuple):
    """What a framework's run came to under a fault, and why."""

    text: str
    is_serious: bool
    reason: str


class FaultTable(NamedTuple):
    """The outcomes in one setting, a row per fault and a column per framework."""

    title: str
    frameworks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[FaultCell, ...]], ...]


def fault_tables(folder: Path) -> list[FaultTable]:
    """Return a table per setting, nothing where the folder has no fault matrix.

    Raises:
        ResultsError: the file is damaged.
    """
    runs = read_faults(folder)
    order = {fault.name: place for place, fault in enumerate(FAULTS)}
    faults = sorted(dict.fromkeys(str(run["fault"]) for run in runs), key=lambda name: order.get(name, len(order)))
    frameworks = tuple(dict.fromkeys(str(run["adapter"]) for run in runs))
    found = {(run["setting"], str(run["fault"]), str(run["adapter"])): run for run in runs}
    return [
        FaultTable(
            title={**TITLES}.get(setting, str(setting)),
            frameworks=frameworks,
            rows=tuple((fault, tuple(_cell(found.get((setting, fault, name))) for name in frameworks)) for fault in faults),
        )
        for setting in dict.fromkeys(run["setting"] for run in runs)
    ]


def read_faults(folder: Path) -> list[dict[str, Any]]:
    """Return the runs of a fault matrix beside the results, nothing where there is none.

    Raises:
        ResultsError: the file is damaged.
    """
    path = folder / FILE
    try:
        content = read_json(path)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} is no fault matrix: {error}; write it by: tuneoff faults --json") from error
    runs = content.get("runs") if isinstance(content, dict) else None
    if not isinstance(runs, list) or not all(isinstance(run, dict) and set(run) >= KEYS for run in runs):
        raise ResultsError(f"{path} is no fault matrix: it has no list `runs`; write it by: tuneoff faults --json")
    return runs


def _cell(run: dict[str, Any] | None) -> FaultCell:
    if run is None or run["outcome"] is None:
        return FaultCell(MISSING, False, "not run, or no such part")
    return FaultCell(str(run["outcome"]), run["outcome"] in SERIOUS, str(run.get("reason") or ""))
