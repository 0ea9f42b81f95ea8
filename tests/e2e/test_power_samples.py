"""Power through the whole command: a kill in mid-run, a meter that cannot be used, one that breaks, one that is replayed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.matrix_runs import finish, has_trained, start, write_matrix
from tuneoff.base.layout import SAMPLES
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples, read_samples
from waiting import until

pytestmark = pytest.mark.slow

SHORT = {"name": "sleep", "options": {"epoch_seconds": 0.1}}
# prints its power five times a second, and ends when it has been told how often
PROGRAM = "import sys, time\nfor n in range(int(sys.argv[1])): print(n / 5, 60 + n % 2, flush=True); time.sleep(0.2)"


def compare(folder: Path, **changes: Any) -> Path:
    """Run a matrix to its end and return its results."""
    file, results = write_matrix(folder, workload=SHORT, **changes)
    command = [sys.executable, "-m", "tuneoff", "compare", "--no-report", "--json", str(file), "--output", str(results)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return results


def samples_of(results: Path, record: RunRecord) -> Samples:
    samples = read_samples(results / "runs" / record.run_id / record.execution_id)
    assert samples is not None
    return samples


def test_a_killed_command_leaves_samples_of_which_its_last_line_may_be_torn(tmp_path: Path) -> None:
    file, results = write_matrix(
        tmp_path, workload=SHORT, budget={"trials": 6, "epochs_per_trial": 20}, power={"interval_seconds": 0.02}
    )
    process = start(file, results)
    try:
        until(lambda: has_trained(results) and any(path.stat().st_size > 4000 for path in results.glob(f"runs/*/*/{SAMPLES}")))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    finish(file, results)
    by_status = {record.status: record for record in read_runs(results)}
    assert set(by_status) == {"done", "interrupted"}
    killed = by_status["interrupted"]
    samples = samples_of(results, killed)
    assert samples.torn_lines <= 1
    assert len(samples.usage) >= 2
    assert killed.environment["power"]["meter"] == samples.header.meter
    assert killed.metrics["suite.sampler_cpu_share"].value is not None  # what was sampled is in the record


def test_a_meter_that_breaks_in_mid_matrix_costs_its_samples_and_no_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "20"]  # 4 s: about the baseline and a part of the first run
    power = {"meter": "command", "options": {"command": command}, "interval_seconds": 0.1}
    results = compare(tmp_path, power=power, seeds=[0, 1])
    first, second = sorted(read_runs(results), key=lambda record: str(record.started_at))
    assert {first.status, second.status} == {"done"}
    flags = {flag.name: flag.text for flag in second.flags}
    assert "power_problem" in flags
    assert samples_of(results, second).power == {}
    assert second.metrics["energy.job"].value is None
    assert second.metrics["energy.job"].reason_if_null


def test_idle_power_is_read_before_the_first_run_and_stored_with_each(tmp_path: Path) -> None:
    power = {"meter": "command", "options": {"command": [sys.executable, "-c", PROGRAM, "1000"]}}
    results = compare(tmp_path, power=power, seeds=[0, 1])
    headers = [samples_of(results, record).header for record in read_runs(results)]
    assert len(headers) == 2
    assert [header.idle_watts for header in headers] == [headers[0].idle_watts] * 2
    assert headers[0].idle_watts["node"] == pytest.approx(60.5, abs=0.5)
    assert headers[0].idle_seconds >= 3.0
    assert not programs_left(), "the meter's program outlived the command"


def programs_left() -> list[int]:
    """Return the living processes of the `command` meter's program."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:  # it has just ended
                continue
            if PROGRAM.encode() in words:
                found.append(int(name))
    return found
