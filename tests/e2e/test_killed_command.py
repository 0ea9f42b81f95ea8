"""SIGKILL of `tuneoff compare` in the middle of a run, per adapter: nothing is left after 5 s, and a resume completes."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from e2e.random_kills import GONE_WITHIN_SECONDS, finish, leftovers, start
from tuneoff.records.store import read_runs

pytestmark = pytest.mark.slow

MATRIX = """
name: killed
workload: {{name: sleep, options: {{epoch_seconds: 0.2}}}}
search_space:
  x: {{type: float, low: 0.0, high: 1.0}}
sampler: random
budget: {{trials: 4, epochs_per_trial: 3}}
workers: {{count: 2}}
adapters: [{adapter}]
warm_up: false
"""


def has_trained(results: Path) -> bool:
    return any(b'"type":"epoch"' in path.read_bytes() for path in results.glob("runs/*/*/events/*.jsonl"))


@pytest.mark.parametrize("adapter", ["serial", "optuna", "ray-tune", "syne-tune"])
def test_a_command_killed_in_mid_run_leaves_nothing_and_resumes_to_its_end(adapter: str, tmp_path: Path) -> None:
    file, results = tmp_path / "matrix.yaml", tmp_path / "results"
    file.write_text(MATRIX.format(adapter=adapter))
    process = start(file, results)
    try:
        deadline = time.monotonic() + 60
        while not has_trained(results):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        kinds = {line.partition(" ")[0] for line in leftovers(results)}
        assert kinds >= {"process", "folder"}  # the probe sees what must go
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = time.monotonic()
    assert process.returncode == -signal.SIGKILL  # it had not ended before
    while (left := leftovers(results)) and time.monotonic() - killed < GONE_WITHIN_SECONDS:
        time.sleep(0.05)
    assert left == []
    finish(file, results)
    assert sorted(record.status for record in read_runs(results)) == ["done", "interrupted"]
