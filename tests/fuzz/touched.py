"""Which of the files that `tuneoff verify` answers for are not as they were: then it must never say VERIFIED.

Written without any of tuneoff's own comparisons. Left out is what verifying says that it takes as stated: `versions` and
`environment` of end.json, and what of matrix.json nothing else can tell (`STATED_IN_PLAN`, `STATED_IN_RUNS`).
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

RAW = ("power.jsonl", "accounting.json", "test.json")
STATED_IN_RECORD = ("versions", "environment")
STATED_IN_PLAN = ("name", "path", "content")
STATED_IN_RUNS = ("label",)
NOT_IN_RUN_ID = (  # labels, places and limits of a run, not what it does
    "spec.adapter_target",
    "spec.local_options",
    "spec.experiment.timeouts",
    "spec.experiment.variant",
    "spec.experiment.workload.target",
)
NONE = object()  # the content of what is not there, or no file


def touched(original: Path, damaged: Path) -> list[str]:
    """Return the raw and derived files of a results folder that were changed, removed or added."""
    names = sorted({*_names(original), *_names(damaged)})
    found = [path.parent for path in original.glob("runs/*/*/events") if not (path.parent / "end.json").exists()]
    bare = {path.parent.name for path in found}  # runs of killed commands: nothing is stored that could differ
    changed = [name for name in names if _is_touched(name, original / name, damaged / name)]
    return [
        name for name in changed if not (name.startswith("runs/") and _is_untold(PurePosixPath(name), bare, original, damaged))
    ]


def _is_untold(path: PurePosixPath, bare: set[str], original: Path, damaged: Path) -> bool:
    """Tell whether a file is of an execution without a record, as a killed command leaves it: none of its numbers is anywhere.

    An interrupted one whose record was removed is the same; verifying notes that nothing of it was verified.
    """
    end = Path(*path.parts[:3]) / "end.json"
    if path.parts[1] in bare:
        return True
    if os.path.lexists(damaged / end) or not (original / end).exists():
        return False
    return bool((json.loads((original / end).read_bytes())["ruling"] or {}).get("status") == "interrupted")


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() or not path.is_dir():
            yield path.relative_to(folder).as_posix()


def _is_touched(name: str, original: Path, damaged: Path) -> bool:
    kind = _kind(PurePosixPath(name))
    if kind is None or (name.startswith("export/") and (_are_gone(original, damaged) or _are_of_others(original, damaged))):
        return False
    before, after = _content(original), _content(damaged)
    if before == after:
        return False
    if before is NONE or after is NONE or kind == "bytes":
        return True
    return not _is_alike(_value(kind, before), _value(kind, after))


def _are_gone(original: Path, damaged: Path) -> bool:
    """Tell whether no table of this one's format is there any more: then none is held to anything."""
    if damaged.parent.is_symlink() or not damaged.parent.is_dir():
        return True
    return not any(os.path.lexists(damaged.parent / path.name) for path in original.parent.glob(f"*{original.suffix}"))


def _are_of_others(original: Path, damaged: Path) -> bool:
    """Tell whether an execution or the key of the tables was changed: then they are held to nothing, and that is said."""
    one, other = original.parents[1], damaged.parents[1]
    keys = ["export/.keys", *(path.relative_to(one).as_posix() for path in one.glob("runs/*/*/end.json"))]
    return any(_content(one / name) != _content(other / name) for name in keys) or len(keys) - 1 != len(
        list(other.glob("runs/*/*/end.json"))
    )


def _kind(path: PurePosixPath) -> str | None:
    """Return how a file is held to what it was; None: nobody answers for it."""
    parts = path.parts
    if parts == ("matrix.json",):
        return "plan"
    if len(parts) == 2 and parts[0] == "export":
        return {".csv": "csv", ".json": "json"}.get(path.suffix)
    if len(parts) < 4 or parts[0] != "runs":
        return None
    below = parts[3:]
    if len(below) == 2 and below[0] == "events":
        return "bytes" if path.suffix == ".jsonl" else None
    if len(below) == 2 and below[0] == "checkpoints":
        return "bytes" if path.suffix == ".safetensors" else None
    if len(below) > 1:
        return None
    if path.name in RAW:
        return "bytes"
    return {"end.json": "record", "spec.json": "bytes", "versions.json": "bytes"}.get(path.name)


def _content(path: Path) -> Any:
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 10**9 else NONE
    except OSError:
        return NONE


def _value(kind: str, content: bytes) -> Any:
    try:
        if kind == "csv":
            return list(csv.reader(content.decode().splitlines()))
        value = json.loads(content)  # neither a byte order mark nor UTF-16 changes anything
    except (ValueError, RecursionError, csv.Error):
        return content  # is equal to itself alone
    if kind == "record" and isinstance(value, dict):
        return {name: item for name, item in value.items() if name not in STATED_IN_RECORD}
    if kind == "plan" and isinstance(value, dict):
        return _plan(value)
    return value


def _plan(value: dict[str, Any]) -> dict[str, Any]:
    known = {name: item for name, item in value.items() if name not in STATED_IN_PLAN}
    runs = known.get("runs")
    if isinstance(runs, list) and all(isinstance(run, dict) for run in runs):
        known["runs"] = [_planned_run(run) for run in runs]
    return known


def _planned_run(run: dict[str, Any]) -> dict[str, Any]:
    known = {name: item for name, item in run.items() if name not in STATED_IN_RUNS}
    for path in NOT_IN_RUN_ID:
        *above, last = path.split(".")
        here: Any = known
        for name in above:
            here = here.get(name) if isinstance(here, dict) else None
        if isinstance(here, dict):
            here.pop(last, None)
    return known


def _is_alike(before: Any, after: Any) -> bool:
    """Tell whether two JSON values are equal, decimal numbers but for their last bits."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_is_alike(before[name], after[name]) for name in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_is_alike, before, after))
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after)]
    if all(numbers) and (isinstance(before, float) or isinstance(after, float)):
        try:
            return math.isclose(before, after, rel_tol=1e-9)
        except OverflowError:
            return False
    return type(before) is type(after) and bool(before == after)
