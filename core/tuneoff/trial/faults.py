"""Why a trial's process died: notes that the supervisor leaves before it kills, and what may be tried again."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = "kills"


def note_kill(run_dir: Path | str, trial_id: str, attempt: int, cause: str) -> None:
    """Leave a note before a trial's process is killed, so that whoever sees the death knows why."""
    folder = Path(run_dir) / FOLDER
    folder.mkdir(exist_ok=True)
    temporary = folder / f".{trial_id}.{attempt}"
    temporary.write_text(cause)
    os.replace(temporary, folder / f"{trial_id}.{attempt}")


def kill_cause(run_dir: Path | str, trial_id: str, attempt: int) -> str | None:
    """Return why the supervisor killed this attempt, or None if it did not."""
    try:
        return (Path(run_dir) / FOLDER / f"{trial_id}.{attempt}").read_text()
    except FileNotFoundError:
        return None


def out_of_memory_kills(cgroup: Path | str) -> int:
    """Return how many processes the kernel has killed in a memory control group (v1 or v2); 0 where it cannot be read."""
    for name in ("memory.oom_control", "memory.events"):
        try:
            lines = (Path(cgroup) / name).read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value)
    return 0


def is_retryable(run_dir: Path | str, trial_id: str, attempt: int, exit_code: int | None, cgroup: str | None = None) -> bool:
    """Tell whether a dead attempt is a fault of the infrastructure: ended by a signal that neither the supervisor (limits)
    nor the kernel's memory control sent. An exit code of its own is the workload's fault."""
    if exit_code is not None and exit_code >= 0:
        return False
    if kill_cause(run_dir, trial_id, attempt) is not None:
        return False
    return cgroup is None or out_of_memory_kills(cgroup) == 0
