"""A fault in a user's own code, through the real command line: its line, and its traceback in log.txt and with --debug."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def run(folder: Path, workload: str, *words: str, adapter: str = "serial") -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run three trials of one of the workloads above; return the answer and the folder of the execution."""
    (folder / "train.py").write_text(TRAIN)
    entry = {"name": adapter, "platform": "emulated"} if adapter == "katib" else adapter
    content: dict[str, Any] = {"workload": f"train:{workload}", "adapters": [entry], "budget": {"trials": 3}, "warm_up": False}
    (folder / "own.yaml").write_text(json.dumps(content))
    ending = ["--json"] if words else []  # an answer in words takes a second more, and one test has it
    command = [sys.executable, "-m", "tuneoff", *words, "compare", "own.yaml", "--output", "d", "--no-report", *ending]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, cwd=folder)
    (execution,) = folder.glob("d/runs/*/*")
    return answer, execution


NONE_COMPLETED = "no trial completed: 3 of 3 failed: ValueError: my data is broken (train.py:{})"


@pytest.mark.parametrize(
    ("workload", "reason", "adapter"),
    [
        *(("Train_load", NONE_COMPLETED, adapter) for adapter in ("serial", "katib")),
        ("Train_test", "could not be tested: ValueError: my data is broken (train.py:{})", "serial"),  # by core, in any run
    ],
)
def test_a_fault_of_one_s_own_workload_is_shown_where_one_looks(tmp_path: Path, workload: str, reason: str, adapter: str) -> None:
    """For Ray and Syne Tune, `test_training_process` looks whether the traceback is in log.txt."""
    answer, execution = run(tmp_path, workload, "--debug", adapter=adapter)
    assert answer.returncode == 1
    assert reason.format(HELPER_LINE) in answer.stderr
    frame = f'train.py", line {HELPER_LINE}, in helper'
    assert frame in (execution / "log.txt").read_text()
    assert frame in answer.stderr


def test_a_fault_of_one_s_own_adapter_is_shown_where_one_looks(tmp_path: Path) -> None:
    answer, execution = run(tmp_path, "Train", "--debug", adapter="train:Own")
    assert answer.returncode == 1
    assert f"step trial failed: ValueError: my data is broken (train.py:{HELPER_LINE})" in answer.stderr
    for text in ((execution / "log.txt").read_text(), answer.stderr):
        assert f'train.py", line {HELPER_LINE}, in helper' in text


def test_without_debug_the_terminal_has_the_line_and_no_traceback(tmp_path: Path) -> None:
    answer, _ = run(tmp_path, "Train_load")
    assert f"(train.py:{HELPER_LINE}); see " in answer.stderr
    assert "Traceback" not in answer.stderr
