"""What a run has on the host where this is called: found by its mark and its folder, and ended."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tuneoff.base.processes import MARK, command_line, end_all, openers, stat_fields, with_mark


def processes_of(execution_id: str, folder: Path | None) -> list[int]:
    """Return the living processes of a run, whose folder this is, but this one and those that it descends from."""
    ancestors = set()
    pid = os.getpid()
    while pid > 1 and (fields := stat_fields(pid)) is not None:
        ancestors.add(pid)
        pid = int(fields[1])
    found = set(with_mark(MARK, execution_id))
    if folder is not None:
        found |= set(openers(os.path.realpath(folder), writing_below=True))
    return sorted(found - ancestors)


def clean(execution_id: str, folder: Path | None) -> list[str]:
    """End all of a run here, remove its folder, and return what is still there."""
    end_all(lambda: processes_of(execution_id, folder))
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    left = [f"process {pid} ({command_line(pid)})" for pid in processes_of(execution_id, folder)]
    return left + ([f"folder {folder}"] if folder is not None and folder.exists() else [])
