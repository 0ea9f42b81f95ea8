"""Which processes a command takes for its run's: not those that it was left before the run's coordinator ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.specs import make_spec
from tuneoff.base.process_limits import PARENT
from tuneoff.base.processes import with_mark
from tuneoff.run.supervisor.execution import Coordinator, new_execution
from waiting import until


def in_another_session() -> subprocess.Popen[bytes]:
    """Start a child of this process as an adopted daemon would be: in a session of its own, without a mark."""
    return subprocess.Popen(["sleep", "60"], start_new_session=True, env={})


@pytest.fixture
def coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Coordinator]:
    """Return a coordinator that does nothing."""
    idle = tmp_path / "idle"
    idle.write_text("#!/bin/sh\nexec sleep 60\n")
    idle.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(idle))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    made = Coordinator(new_execution(make_spec(), tmp_path / "runs"), tmp_path, tmp_path)
    yield made
    made.kill_all()
    made.close()


def test_a_coordinator_is_told_its_command_whose_end_it_may_be_too_late_to_be_told(coordinator: Coordinator) -> None:
    until(lambda: coordinator.pid in with_mark(PARENT, str(os.getpid())))  # while it executes its program it has no environment
    assert coordinator.pid not in with_mark("PYTHONDONTWRITEBYTECODE", "1")  # its processes keep what Python compiled


def test_a_daemon_that_came_while_the_coordinator_lived_is_not_of_the_run_and_one_that_came_after_is(
    coordinator: Coordinator,
) -> None:
    innocent, orphan = in_another_session(), None
    try:
        assert coordinator.wait(0) is None
        coordinator.kill_all()
        orphan = in_another_session()
        assert coordinator.wait(0) is not None
        assert coordinator.descendants() == [orphan.pid]
        assert innocent.poll() is None
    finally:
        for process in (innocent, orphan):
            if process is not None:
                process.kill()
                process.wait()
