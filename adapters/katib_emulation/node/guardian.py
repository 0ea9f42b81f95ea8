"""The server's side of the guardian: the mark of its processes, and the pipe whose end lets the guardian kill them."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

from katib_emulation.node import guardian_process

VARIABLE = "KATIB_EMULATED_NODE"
"""The environment variable that every process of a pod has; never set in the server's own environment."""


class Guardian:
    """The guardian process. It starts with the object, and ends when the server ends, however that happens."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(guardian_process.__file__)), f"{VARIABLE}={self.mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # what kills the server's own group must not kill it
        )

    def dismiss(self) -> None:
        """Let it kill what is left, and wait for its end. May be called twice."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
