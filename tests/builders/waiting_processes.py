"""Processes that wait until their input ends, to be found, watched, measured or ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WAIT = "import sys; print('up', flush=True); sys.stdin.read()"


def started(script: str, *arguments: str, lines: int = 1, **options: Any) -> subprocess.Popen[str]:
    """Return a process of a Python script that has said `lines` times that it is up."""
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    assert process.stdout is not None
    for _ in range(lines):
        assert process.stdout.readline() == "up\n"
    return process


@contextmanager
def waiting(script: str = WAIT, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process, and kill it at the end of the block."""
    process = started(script, *arguments, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
