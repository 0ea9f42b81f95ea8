"""What a run has on the host where this is called: seen by its mark and its folder, and ended.

`python -m tuneoff_platforms.remote.cleaning EXECUTION_ID` prints a line on each thing that is still there.
"""

from __future__ import annotations

import os
import sys

from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import MARK, command_line, end_all, stat_fields, with_mark


def processes_of(execution_id: str, folder: PrivateFolder | None) -> list[int]:
    """Return the living processes of a run, whose folder this is, but this one and those that it descends from."""
    ancestors = set()
    pid = os.getpid()
    while pid > 1 and (fields := stat_fields(pid)) is not None:
        ancestors.add(pid)
        pid = int(fields[1])
    writers = folder.writers() if folder is not None else set()
    return sorted({*with_mark(MARK, execution_id), *writers} - ancestors)


def clean(execution_id: str, folder: PrivateFolder | None) -> list[str]:
    """End all of a run here, remove its folder, and return what is still there."""
    end_all(lambda: processes_of(execution_id, folder))
    if folder is not None:
        folder.remove()
    leftovers = [f"process {pid} ({command_line(pid)})" for pid in processes_of(execution_id, folder)]
    return leftovers + ([f"folder {folder.path}"] if folder is not None and folder.is_there else [])


if __name__ == "__main__":
    print(*clean(sys.argv[1], None), sep="\n")
