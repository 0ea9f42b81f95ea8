"""Streams that cannot be written, and a terminal that goes away: the run goes on, and the exit code is that of its end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from functools import partial
from pathlib import Path

import pytest

from tuneoff.measure.stored import read_runs
from waiting import until

pytestmark = pytest.mark.slow

MATRIX = """
workload: {name: sleep, options: {epoch_seconds: 0.2}}
search_space: {x: {type: float, low: 0.0, high: 1.0}}
sampler: random
budget: {trials: TRIALS, epochs_per_trial: 3}
adapters: [serial]
warm_up: false
"""


def command(tmp_path: Path, *more: str, trials: int = 4) -> list[str]:
    (tmp_path / "matrix.yaml").write_text(MATRIX.replace("TRIALS", str(trials)))
    files = [str(tmp_path / "matrix.yaml"), "--output", str(tmp_path / "results")]
    return [sys.executable, "-m", "tuneoff", "compare", *files, *more]


def has_trained(tmp_path: Path) -> bool:
    return any(b'"type":"epoch"' in path.read_bytes() for path in tmp_path.glob("results/runs/*/*/events/*.jsonl"))


def statuses(tmp_path: Path) -> list[str]:
    return [record.status for record in read_runs(tmp_path / "results")]


@pytest.mark.parametrize(("terminal", "options"), [("xterm", []), ("dumb", ["--no-report"])])
def test_a_command_that_ignores_sighup_outlives_its_terminal(tmp_path: Path, terminal: str, options: list[str]) -> None:
    ours, theirs = pty.openpty()

    def prepare() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

    environment = {**os.environ, "TERM": terminal}
    process = subprocess.Popen(
        command(tmp_path, *options), stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=prepare, env=environment
    )
    os.close(theirs)
    os.set_blocking(ours, False)

    def is_trained_and_read() -> bool:
        with contextlib.suppress(BlockingIOError):
            os.read(ours, 65_536)
        return has_trained(tmp_path)

    try:
        until(is_trained_and_read, 60)
    finally:
        os.close(ours)  # SIGHUP goes to the command, which leads the session, and from now on each write fails
    assert process.wait(60) == 0
    assert statuses(tmp_path) == ["done"]
    assert bool(list(tmp_path.glob("results/**/report.html"))) is (options == [])


def test_sighup_interrupts_a_command_that_does_not_ignore_it_and_no_other(tmp_path: Path) -> None:
    for ignores, code, status in ((True, 0, "done"), (False, 130, "interrupted")):
        folder = tmp_path / status
        folder.mkdir()
        disposition = signal.SIG_IGN if ignores else signal.SIG_DFL
        process = subprocess.Popen(
            command(folder, "--json", "--no-report", trials=4 if ignores else 1000),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda disposition=disposition: signal.signal(signal.SIGHUP, disposition),  # type: ignore[misc]
        )
        until(partial(has_trained, folder), 60)
        process.send_signal(signal.SIGHUP)
        written, _ = process.communicate(timeout=60)
        assert process.returncode == json.loads(written)["exit_code"] == code
        assert statuses(folder) == [status]


@pytest.mark.parametrize(
    ("arguments", "code", "unbuffered"),  # what is buffered is written at the interpreter's end, too
    [(["list", "adapters"], 5, ""), (["list", "adapters"], 5, "1"), (["plan", "nothing.yaml"], 2, "")],
)
def test_full_standard_streams_change_no_exit_code(arguments: list[str], code: int, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "tuneoff", *arguments]
        done = subprocess.run(program, stdout=full, stderr=full, env=environment, check=False)
    assert done.returncode == code


def test_a_run_is_done_whose_command_has_full_standard_streams_and_its_code_says_what_could_not_be_written(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with open("/dev/full", "w") as full:
        program = command(tmp_path, "--no-report")
        done = subprocess.run(program, stdout=full, stderr=full, env=environment, check=False, timeout=60)
    assert done.returncode == 5
    assert statuses(tmp_path) == ["done"]
