"""docs/live.md: the listener for Prometheus that it names, on a folder in which a run is under way."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.live_folders import Folder

REPOSITORY = Path(__file__).parents[2]
MODULE = "benchmarks.prometheus"


@pytest.fixture
def metrics(tmp_path: Path) -> Iterator[bytes]:
    """Return what the listener answers of a folder with one run done, one under way and four planned."""
    folder = Folder(tmp_path / "results")
    folder.take()
    folder.end("serial", 0)
    running = folder.begin("optuna", 0)
    running.write()
    running.trial("t-1", value=0.25)
    running.trial("t-2", "failed")
    command = [sys.executable, "-m", MODULE, str(folder.path), "0"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=60) as answer:
            yield answer.read()
    finally:
        process.kill()
        process.communicate()
        folder.leave(ended=False)


def test_the_page_names_the_listener() -> None:
    assert f"python -m {MODULE} DIR" in (REPOSITORY / "docs" / "live.md").read_text()


def test_the_listener_serves_the_state_of_the_matrix(metrics: bytes) -> None:
    lines = metrics.decode().splitlines()
    assert {
        'tuneoff_runs{status="done"} 1',
        'tuneoff_runs{status="running"} 1',
        'tuneoff_runs{status="planned"} 4',
        'tuneoff_run_trials{state="completed"} 1',
        'tuneoff_run_trials{state="failed"} 1',
        'tuneoff_run_trials{state="running"} 0',
        "tuneoff_run_epochs{} 2",
    } <= set(lines)
    assert [line for line in lines if line.startswith("tuneoff_run_incumbent{") and line.endswith(" 0.25")]
    assert [line for line in lines if line.startswith("tuneoff_run_info{run_id=") and 'name="optuna' in line]
