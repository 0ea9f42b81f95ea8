"""Ctrl-C and a second command on the same folder, through the real command line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneoff.base.processes import with_mark
from tuneoff.run.run_ends import run_ends
from tuneoff.run.supervisor.leftovers import RESULTS_MARK

pytestmark = pytest.mark.slow

MATRIX = """
name: interruption
workload: {{name: sleep, options: {{epoch_seconds: 0.2}}}}
search_space:
  x: {{type: float, low: 0.0, high: 1.0}}
sampler: random
budget: {{trials: 20, epochs_per_trial: 5}}
workers: {{count: 2}}
adapters: [{adapter}]
warm_up: false
"""


def command(tmp_path: Path, adapter: str, *more: str) -> list[str]:
    file = tmp_path / "matrix.yaml"
    file.write_text(MATRIX.format(adapter=adapter))
    return [sys.executable, "-m", "tuneoff", "compare", "--no-report", str(file), "--output", str(tmp_path / "results"), *more]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A command before its first trial; each adapter is interrupted in its contract, once a trial has completed."""
    process = subprocess.Popen(command(tmp_path, "serial"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "results").glob("runs/*/*/events/*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield process
    process.kill()
    process.communicate()


def test_ctrl_c_undeploys_within_15_seconds_and_leaves_a_resumable_matrix(running: subprocess.Popen[str], tmp_path: Path) -> None:
    results = tmp_path / "results"
    started = time.monotonic()
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert time.monotonic() - started < 15
    assert running.returncode == 130
    assert "Traceback" not in errors
    assert "--resume" in errors
    assert with_mark(RESULTS_MARK, str(results.resolve())) == []
    assert [end.status for end in run_ends(results)] == ["interrupted"]
