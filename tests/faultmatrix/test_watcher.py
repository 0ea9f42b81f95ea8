"""The watching process: what a killed command leaves is ended and removed, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneoff.run.supervisor.controllers import V2, Place
from tuneoff.trust.faultmatrix import memory
from tuneoff.trust.faultmatrix.child import CELL, cell_prefix

COMMAND = """
import os, subprocess, sys
from pathlib import Path
from tuneoff.trust.faultmatrix.child import CELL, cell_prefix
from tuneoff.trust.faultmatrix.watcher import watch
watcher = watch(Path(sys.argv[1]))
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
for number in range(2):
    environment = {**os.environ, CELL: f"{cell_prefix(os.getpid())}{number}"}
    print(subprocess.Popen(sleep, start_new_session=True, env=environment, stdout=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of a cell of another command."""
    environment = {**os.environ, CELL: f"{cell_prefix(os.getpid())}0"}
    process = subprocess.Popen(["sleep", "60"], env=environment)
    yield process
    process.kill()
    process.wait()


def is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_cells_of_a_killed_command_are_ended_and_its_folder_is_removed(
    tmp_path: Path, bystander: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    root = tmp_path / "root"
    (root / "0").mkdir(parents=True)
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert command.stdout is not None
    pids = [int(command.stdout.readline()) for _ in range(2)]
    time.sleep(0.2)
    assert root.exists()
    os.killpg(command.pid, number)
    command.communicate()
    deadline = time.monotonic() + 20
    while (root.exists() or not all(map(is_over, pids))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not root.exists()
    assert all(map(is_over, pids))
    assert bystander.poll() is None


def test_groups_of_one_command_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "places", lambda wanted: {"memory": Place(text=V2, parent=tmp_path)})
    for name in ("tuneoff-faults-7-0", "tuneoff-faults-7-12", "tuneoff-faults-70-0", "another"):
        (tmp_path / name).mkdir()
    memory.remove_groups("faults-7-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", "tuneoff-faults-70-0"]
