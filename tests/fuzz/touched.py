"""Which of the files that `tuneoff verify` answers for are not as they were: then it must never say VERIFIED.

Written without any of tuneoff's own comparisons. Left out is what verifying says that it takes as stated: `versions` and
`environment` of end.json, and what of matrix.json nothing else can tell (`STATED_IN_PLAN`, `STATED_IN_RUNS`); and exports.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

RAW = ("power.jsonl", "accounting.json", "test.json", "spec.json", "versions.json")
OF_FOLDERS = {"events": ".jsonl", "checkpoints": ".safetensors"}
STATED_IN_RECORD = ("versions", "environment")
STATED_IN_PLAN = ("name", "path", "content")
STATED_IN_RUNS = (  # labels, places and limits of a run, not what it does
    "label",
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
    parts = PurePosixPath(name).parts
    below, suffix = (parts[3:], Path(name).suffix) if parts[0] == "runs" else ((), "")
    is_raw = (len(below) == 1 and below[0] in RAW) or (len(below) == 2 and OF_FOLDERS.get(below[0]) == suffix)
    if not is_raw and name != "matrix.json" and below != ("end.json",):
        return False  # nobody answers for it
    before, after = _content(original), _content(damaged)
    if before == after:
        return False
    return NONE in (before, after) or is_raw or _told(before) != _told(after)


def _content(path: Path) -> Any:
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 10**9 else NONE
    except OSError:
        return NONE


def _told(content: bytes) -> Any:
    """Return what a plan or an end tells that something else tells too, as text; numbers but for their last bits."""
    try:
        value = json.loads(
            content, parse_int=_digits, parse_float=_digits
        )  # neither a byte order mark nor UTF-16 changes anything
    except (ValueError, RecursionError):
        return content  # is equal to itself alone
    if not isinstance(value, dict):
        return json.dumps(value)
    runs = value.get("runs")
    for run in runs if isinstance(runs, list) else ():
        for path in STATED_IN_RUNS:
            *above, last = path.split(".")
            here: Any = run
            for name in above:
                here = here.get(name) if isinstance(here, dict) else None
            if isinstance(here, dict):
                here.pop(last, None)
    stated = STATED_IN_PLAN if "runs" in value else STATED_IN_RECORD
    return json.dumps({name: item for name, item in value.items() if name not in stated}, sort_keys=True)


def _digits(number: str) -> str:
    return f"#{float(number):.12g}"
