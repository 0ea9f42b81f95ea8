"""`python -m tuneoff.trust.faultmatrix.watcher ROOT PREFIX`: outlives `tuneoff faults`, and removes what that leaves.

At the end of the pipe from tuneoff every process of the cells whose names begin with PREFIX is ended, and their control groups
and the folder ROOT are removed.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tuneoff.run.supervisor.watcher import Watcher, read_to_end
from tuneoff.trust.faultmatrix.child import cell_prefix, end_cell
from tuneoff.trust.faultmatrix.memory import remove_groups


def watch(root: Path) -> Watcher:
    """Start the watcher for the cells of this process, whose files lie below `root`."""
    return Watcher(__name__, str(root.resolve()), cell_prefix(os.getpid()))


def main(root: Path, prefix: str) -> None:
    read_to_end()
    end_cell(prefix, is_prefix=True)
    remove_groups(prefix)
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
