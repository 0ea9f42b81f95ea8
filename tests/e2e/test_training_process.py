"""Every trial finds the process of a fresh program and has its own configuration; how it ends is its own.

In detail in core's pool and in a framework's; that the others have it too: checks `process.fresh`, `configurations.own` and
`failures.any-end` of their contracts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from trial_runs import default_signals

pytestmark = pytest.mark.slow(first=True)
TRAINING = Path(__file__).parents[1] / "changing_workload.py"
OWN_END = "its own code ended its process: "
ENDS = {  # state and the beginning of the cause, by what a trial does
    "fine": ("completed", ""),
    "exit": ("failed", "SystemExit: 0 (changing_workload.py:"),
    "base": ("failed", "Stop: the end (changing_workload.py:"),
    "interrupt": ("failed", "KeyboardInterrupt (changing_workload.py:"),
    "mute": ("failed", "Mute (changing_workload.py:"),
    "terminate": ("failed", f"{OWN_END}SIGTERM (changing_workload.py:"),
    "abort": ("failed", f"{OWN_END}SIGABRT (changing_workload.py:"),
    "leave": ("failed", f"{OWN_END}exit code 3 (changing_workload.py:"),
}
ENDING = ("terminate", "abort", "leave")  # their process
BASE_LINE = TRAINING.read_text().splitlines().index('            raise Stop("the end")') + 1


@pytest.mark.parametrize("adapter", ["serial", "optuna"])
def test_a_training_that_changes_its_process_changes_nothing_for_another_trial(adapter: str, tmp_path: Path) -> None:
    shutil.copy(TRAINING, tmp_path)
    notes = tmp_path / "notes.jsonl"
    kinds = ["fine", "exit", "fine", "base", "fine", "interrupt", "mute", "fine", *ENDING]
    layers: list[list[int]] = [[64], [32]]
    experiment: dict[str, Any] = {
        "workload": {"name": "changing_workload:train", "options": {"notes": str(notes)}},
        "search_space": {
            "kind": {"type": "categorical", "choices": list(ENDS)},
            "layers": {"type": "categorical", "choices": layers},
            "number": {"type": "int", "low": 0, "high": len(kinds)},
        },
        "objective": {"metric": "value", "mode": "min"},
        "sampler": "fixed",
        "configurations": [{"kind": kind, "layers": layers[0], "number": number} for number, kind in enumerate(kinds)],
        "failures": {"retries": 1},
        "budget": {"trials": len(kinds), "epochs_per_trial": 2},
        "adapters": [adapter],
        "warm_up": False,
    }
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    environment = {**os.environ, "PYTHONPATH": ""}
    command = [sys.executable, "-m", "tuneoff", "compare", "experiment.yaml", "--output", "out", "--no-report"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, umask=0o027)
    records = [json.loads(path.read_text()) for path in tmp_path.glob("out/runs/*/*/run.json")]
    assert len(records) == 1, done.stderr
    (log,) = tmp_path.glob("out/runs/*/*/log.txt")
    assert f'{TRAINING.name}", line {BASE_LINE}, in train' in log.read_text(errors="replace")
    trials = {trial["configuration"]["number"]: trial for trial in records[0]["trials"]}
    for number, kind in enumerate(kinds):
        trial, (state, cause) = trials[number], ENDS[kind]
        assert (trial["state"], trial["configuration"]["layers"]) == (state, [64]), trial
        assert (trial.get("cause") or "").startswith(cause), trial
        assert trial.get("charged") == (None if kind == "fine" else "workload"), trial
        assert trial.get("attempt", 1) == 1, trial  # a fault of its own is not tried again
    program = [sys.executable, str(tmp_path / TRAINING.name)]
    fresh = subprocess.run(
        program,
        cwd=tmp_path,
        env=environment,
        umask=0o027,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=default_signals,
    )
    seen = [json.loads(line) for line in notes.read_text().splitlines()]
    expected = json.loads(fresh.stdout).items()
    assert [{name: note["seen"][name] for name, value in expected if note["seen"][name] != value} for note in seen] == [{}] * len(
        kinds
    )
    assert [note["layers"] for note in seen] == [[64]] * len(kinds)
    assert len({note["pid"] for note in seen}) == len(ENDING)  # the last ones: no other end costs a worker its life
