"""The guardian of a command: what a killed command leaves is ended and removed, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneoff.base.processes import is_alive
from tuneoff.run.supervisor.guardian import WATCHED
from waiting import until

COMMAND = """
import os, subprocess, sys
from pathlib import Path
from tuneoff.run.supervisor.guardian import watching
from tuneoff_faults.run_cells import memory_group
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
with watching() as announce:
    announce(Path(sys.argv[1]))
    for options in ({"start_new_session": True}, {}):
        print(subprocess.Popen(sleep, stdout=subprocess.DEVNULL, **options).pid, flush=True)
    start = "import subprocess, sys; below = subprocess.Popen(sys.argv[1:], env={}); print(below.pid, flush=True); below.wait()"
    subprocess.Popen([sys.executable, "-c", start, *sleep], start_new_session=True)
    with memory_group(f"test-{os.getpid()}", 100_000_000, announce) as group:
        sys.stdin.readline()
        print(group, flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of another command, in the session of the one that is killed."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, WATCHED: f"{os.getpid()}-other"})
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_command_leaves_is_ended_and_removed(
    tmp_path: Path, bystander: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    """The third process has lost its mark; the control group is there where one can be made."""
    root = tmp_path / "root"
    (root / "0").mkdir(parents=True)
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert command.stdin is not None
    assert command.stdout is not None
    pids = [int(command.stdout.readline()) for _ in range(3)]
    command.stdin.write("\n")
    command.stdin.flush()
    group = Path(command.stdout.readline().strip())
    assert root.exists()
    assert group == Path("None") or group.exists()
    command.send_signal(number)
    command.communicate()
    until(lambda: not (root.exists() or group.exists() or any(map(is_alive, pids))))
    assert bystander.poll() is None


def test_what_a_command_leaves_that_ends_well_is_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    code = COMMAND.partition("    for options")[0]
    subprocess.run([sys.executable, "-c", code, str(root)], check=True)
    assert root.exists()
