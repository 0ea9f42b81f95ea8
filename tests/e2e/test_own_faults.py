"""A fault in a user's own code, through the real command line: its line, and its traceback in log.txt and with --debug."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from command_line import write_file

pytestmark = pytest.mark.slow

TRAIN = """\
from tuneoff.base.space import Float, SearchSpace
from tuneoff.workload import Scores, Workload
from tuneoff_adapters.serial import SerialAdapter


class Train(Workload):
    name = "train"
    metrics = {"validation_loss": "min"}
    default_metric = "validation_loss"
    default_epochs = 1
    has_state = False

    @classmethod
    def default_space(cls):
        return SearchSpace({"x": Float(low=0.0, high=1.0)})

    def load(self, configuration, seeds):
        self.x = configuration["x"]

    def train_epoch(self, epoch):
        return {}

    def validate(self):
        return {"validation_loss": self.x}

    def test(self):
        return Scores(values={"test_loss": self.x})


def helper():
    raise ValueError("my data is broken")


class Train_load(Train):
    def load(self, configuration, seeds):
        helper()


class Train_test(Train):
    def test(self):
        helper()


class Own(SerialAdapter):
    def run_trials(self):
        helper()
"""
HELPER_LINE = TRAIN.splitlines().index('    raise ValueError("my data is broken")') + 1


HERE = f"ValueError: my data is broken (train.py:{HELPER_LINE})"
FRAME = f'train.py", line {HELPER_LINE}, in helper'


def run(folder: Path, workload: str, *words: str, adapters: Sequence[str] = ("serial",)) -> tuple[str, list[str]]:
    """Run three trials of one of the workloads above by each adapter; return the errors, and the log of each execution."""
    (folder / "train.py").write_text(TRAIN)
    content = {"workload": f"train:{workload}", "adapters": [*adapters], "budget": {"trials": 3}, "warm_up": False}
    write_file(folder / "own.yaml", content)
    command = [sys.executable, "-m", "tuneoff", *words, "compare", "own.yaml", "--output", "d", "--no-report"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, cwd=folder)
    assert answer.returncode == 1
    return answer.stderr, [path.read_text() for path in folder.glob("d/runs/*/*/log.txt")]


def test_a_fault_of_one_s_own_code_is_shown_where_one_looks(tmp_path: Path) -> None:
    errors, logs = run(tmp_path, "Train_load", "--debug", adapters=("serial", "katib@emulated", "train:Own"))
    lines = [line for line in errors.splitlines() if line.startswith("tuneoff: run ")]
    assert sum(f"no trial completed: 3 of 3 failed: {HERE}" in line for line in lines) == 2
    assert f"step trial failed: {HERE}" in errors
    assert len(logs) == 3
    assert all(FRAME in text for text in (errors, *logs))


def test_without_debug_the_terminal_has_the_line_and_the_log_the_traceback(tmp_path: Path) -> None:
    errors, (log,) = run(tmp_path, "Train_test")
    assert f"could not be tested: {HERE}; see " in errors
    assert "Traceback" not in errors
    assert FRAME in log
