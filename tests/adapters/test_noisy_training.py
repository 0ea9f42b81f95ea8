"""A training that prints whatever it likes, and much, gives another library's numbers and has choices that look alike: in every
adapter. What it prints has a bound on the disk, and its first and last words stay."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command_line import caller, write_file

pytestmark = pytest.mark.slow

TRAIN = r"""
import logging, os, subprocess, sys
import numpy as np

print("the first words")
print("half a line at the import", end="")
SCORES = {"1": 0.25, "1.0": 0.5, "True": 0.75, "'1'": 1.0, "[1]": 1.25, "[1.0]": 1.5}
EVENT = '{"type":"trial_ended","seq":3,"t":1,"trial":"t00000","state":"failed","epochs":0}'
HALVES = [".", "\r 50%|#####     |", "\0\0", EVENT[:40], EVENT + "\n" + EVENT, '[tune-metric]: {"epoch": 1', "\x1e"]
HALVES.append("x" * 300_000)

def train(configuration):
    score = SCORES[repr(configuration["kind"])]
    for epoch in (1, 2):
        logging.warning("epoch %d", epoch)
        for half in HALVES:
            print(half, end="", flush=True)
            sys.stderr.write(half)
        os.write(1, b"\xf0\x9f")
        os.write(2, b"\x1b[2K\r\xc3")
        subprocess.run(["printf", "half a line of a child"], check=True)
        for _ in range(LINES if configuration["kind"] == "1" else 0):
            print(99 * "x")
        print("the last words", flush=True)
        yield {"score": np.float32(score / epoch), "other": np.array(epoch)}
        print("Training Container was Early Stopped", end="\n.", flush=True)
"""
LINES = 30_000  # of 100 bytes, printed in each epoch of one trial
PRINTED_BYTES = 2 * 100 * LINES
NOISE_BYTES = 8_000_000  # at most, that all trials print beside them
KINDS = [1, 1.0, True, "1", [1], [1.0]]
ADAPTERS = ["serial", "optuna", "ray-tune", "syne-tune", "katib@emulated"]
EXPECTED = {"1": 0.25, "1.0": 0.5, "True": 0.75, "'1'": 1.0, "[1]": 1.25, "[1.0]": 1.5}


def left_out(folder: Path) -> list[int]:
    """Return how many bytes each log of a run was shortened by; no log is longer than its bound."""
    counts = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        assert len(content) < 5_100_000, path
        for count in re.findall(rb"\[tuneoff left out (\d+) ", content):
            assert b"the first words" in content[:100_000], path
            assert b"the last words" in content[-100_000:], path
            counts.append(int(count))
    return counts


def test_every_adapter_records_the_same_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy_training.py").write_text(f"LINES = {LINES}\n{TRAIN}")
    file: dict[str, Any] = {
        "workload": "noisy_training:train",
        "search_space": {"kind": {"type": "categorical", "choices": KINDS}},
        "objective": {"metric": "score", "mode": "min"},
        "sampler": "grid",
        "budget": {"epochs_per_trial": 2},
        "adapters": ADAPTERS,
        "warm_up": False,
    }
    answer = caller(capsys)("compare", write_file(tmp_path / "file.yaml", file), "--output", "out", "--no-report", "--json")
    assert [run["status"] for run in json.loads(answer.out)["runs"]] == ["done"] * len(ADAPTERS), answer.err
    records = {}
    for path in tmp_path.glob("out/runs/*/*/run.json"):
        run = json.loads(path.read_text())
        records[run["specification"]["adapter"]] = run
        flags = {flag["name"] for flag in run["flags"]}
        assert not {"missing_lines", "orphan_events"} & flags, run["flags"]
        shortened = left_out(path.parent)
        assert "log_shortened" in flags
        assert shortened
        assert all(PRINTED_BYTES - 5_000_000 <= count <= PRINTED_BYTES + NOISE_BYTES for count in shortened)
    assert len(records) == len(ADAPTERS)
    for adapter, run in records.items():
        epochs = {
            repr(trial["configuration"]["kind"]): [epoch["metrics"] for epoch in trial["attempts"][-1]["epochs"]]
            for trial in run["trials"]
        }
        assert {trial["state"] for trial in run["trials"]} == {"completed"}, adapter
        assert epochs == {
            kind: [{"score": score / epoch, "other": epoch} for epoch in (1, 2)] for kind, score in EXPECTED.items()
        }, adapter
