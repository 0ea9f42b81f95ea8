"""`python node_process.py FOLDER`: a process with a node, which runs until it is killed (for tests of its sudden end)."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from katib_emulation.node import Node
from katib_emulation.observations import Observations
from katib_emulation.store import Store


def main(folder: Path) -> None:
    """Start the node and sleep."""
    store = Store(folder)
    Node(store, Observations(store.database), folder).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
