"""Real matrices verify: interrupted and resumed, killed, emulated; one that is done: test_same_configurations."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command_line import Call, caller

pytestmark = pytest.mark.slow(first=True)

CHECKPOINTS = "runs/*/*/checkpoints/*.safetensors"
SPACE: dict[str, Any] = {"x": {"type": "float", "low": 0.0, "high": 1.0}}


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "tuneoff", *map(str, words)]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs a command of which no process is killed."""
    return caller(capsys)


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=280)


def write_matrix(folder: Path, **content: Any) -> Path:
    """Write an experiment file of two adapters, with keys replaced."""
    path = folder / "matrix.yaml"
    least = {
        "name": "verified",
        "workload": "null",
        "search_space": SPACE,
        "sampler": "random",
        "budget": {"trials": 4, "epochs_per_trial": 3},
        "workers": {"count": 2},
        "adapters": ["serial", "optuna"],
        "warm_up": False,
    }
    path.write_text(json.dumps({**least, **content}))
    return path


def verified(call: Call, results: Path) -> dict[str, Any]:
    """Verify a folder, and return what was checked and told."""
    answer = call("verify", results, "--json")
    assert answer.err == ""
    found: dict[str, Any] = json.loads(answer.out)
    assert found["problems"] == []
    assert (answer.code, found["verified"]) == ((0, True) if found["checked"]["executions"] else (7, None))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_matrix_that_was_ended_and_resumed_is_verified(call: Call, tmp_path: Path, number: signal.Signals) -> None:
    content = {"workload": {"name": "sleep", "options": {"epoch_seconds": 0.1}}, "budget": {"trials": 6, "epochs_per_trial": 4}}
    file, results = write_matrix(tmp_path, adapters=["serial"], seeds=[0, 1], **content), tmp_path / "results"
    process = subprocess.Popen(
        command("compare", "--no-report", "--json", file, "--output", results),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not any('"epoch"' in path.read_text() for path in results.glob("runs/*/*/events/[tw]*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    process.wait(60)
    deadline = time.monotonic() + 60
    if number == signal.SIGINT:
        found = verified(call, results)
        assert len(found["not_begun"]) == 1
        assert "interrupted by the user" in next(iter(found["not_recomputable"]["executions"].values()))[0]
    else:
        while "works in this folder now" in (found := verified(call, results))["notes"][0]["text"]:  # its guardian cleans
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert "no end.json, as its command was killed" in found["notes"][0]["text"]
    assert run("compare", "--no-report", "--json", file, "--output", results, "--resume").returncode == 0
    found = verified(call, results)
    assert (found["checked"]["runs"], found["checked"]["executions"], found["not_begun"]) == (2, 3, [])
    last = json.loads((results / "matrix.json").read_text())["runs"][-1]["run_id"]
    shutil.rmtree(results / "runs" / last)  # control: the command came to its end, so all runs must be there
    assert f"runs/{last}: planned " in call("verify", results).out


def test_a_run_with_an_emulated_platform_is_verified(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("kubeflow.katib")
    results = tmp_path / "results"
    file = write_matrix(tmp_path, adapters=[{"name": "katib", "platform": "emulated"}])
    assert run("compare", "--no-report", "--json", file, "--output", results).returncode == 0
    assert verified(call, results)["checked"]["runs"] == 1
    assert list(results.glob(CHECKPOINTS)) == []  # of a workload without any
