"""A process that outlives the command that started it, and learns of the command's end by a pipe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence


class Outliving:
    """Such a process, from tuneoff's side: `python -m MODULE ARGUMENTS`, whose standard input is the pipe."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str], pass_fds: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what kills tuneoff's own group must not kill it
            pass_fds=tuple(pass_fds),
            env=dict(environment),
        )

    def dismiss(self) -> None:
        """Tell it that all ended well, and wait for its end."""
        self._process.communicate(b"q")

    def let_clean(self) -> None:
        """Let it end and remove whatever is left, and wait for its end."""
        self._process.communicate()
