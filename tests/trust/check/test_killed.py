"""A check that is killed leaves nothing: no process, no folder, no control group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trust.environments import processes_with
from tuneoff.base.layout import LEFTOVERS
from tuneoff.run.supervisor.leftovers import remembered

SECONDS = 30.0


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files of the command; its path is short, as sockets need it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def processes_of(folder: Path) -> list[int]:
    """Return the living processes whose environment names the folder, or something in it, as theirs for temporary files."""
    return processes_with(f"TMPDIR={folder}")


def announced_in(folder: Path) -> list[str]:
    return [value for path in folder.glob(f"*/*/results/runs/*/*/{LEFTOVERS}") for _, value in remembered(path.parent)]


def is_left(temporary: Path, announced: list[str]) -> bool:
    return bool(list(temporary.iterdir()) or processes_of(temporary) or any(map(os.path.exists, announced)))


@pytest.mark.slow
def test_a_killed_check_leaves_nothing(temporary: Path) -> None:
    command = [sys.executable, "-m", "tuneoff", "check", "serial", "--only", "best.direction"]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)}, start_new_session=True)
    deadline = time.monotonic() + SECONDS
    while not any(map(os.path.exists, announced_in(temporary))) and time.monotonic() < deadline:
        time.sleep(0.02)
    announced = announced_in(temporary)
    assert announced
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + SECONDS
    while is_left(temporary, announced) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(temporary.iterdir()) == []
    assert processes_of(temporary) == []
    assert not any(map(os.path.exists, announced))
