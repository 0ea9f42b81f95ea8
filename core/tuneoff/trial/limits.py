"""Limits that a trial's process sets on itself: threads, memory control group, death with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to SIGKILL this process when the thread that started it dies. A no-op where there is no such call."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def thread_environment(threads: int) -> dict[str, str]:
    """Return the environment variables that limit the threads of numerical libraries."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


def join_cgroup(folder: str) -> str | None:
    """Move this process into a control group; return why it failed, or None."""
    try:
        (Path(folder) / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return None
