"""`tuneoff verify`: its answer, its exit codes, and its JSON."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builders.results_folders import Results, edit, write_examples
from command_line import Call
from tuneoff.base.layout import LOCK


def test_json_stays_json_where_a_stored_number_is_infinite(call: Call, results: Results) -> None:
    path = results.folder(results.plan.runs[0].spec) / "run.json"
    edit(path, lambda text: text.replace('"time.jct": {"value":176000.0', '"time.jct": {"value":1e999'))
    found = json.loads(call("verify", results.path, "--json").out, parse_constant=pytest.fail)
    assert [note["text"].partition(" is damaged")[0] for note in found["notes"]] == ["run.json"]


def test_the_folder_is_not_changed(call: Call, results: Results) -> None:
    before = {path: path.stat().st_mtime_ns for path in results.path.rglob("*")}
    call("verify", results.path)
    assert {path: path.stat().st_mtime_ns for path in results.path.rglob("*")} == before


def test_progress_is_on_a_terminal_alone(results: Results) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tuneoff", "verify", str(results.path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(slave)
    out, _ = process.communicate(timeout=60)
    shown = os.read(master, 10_000).decode()
    os.close(master)
    assert process.returncode == 0
    assert "VERIFIED" in out
    assert "verified 0 of 2 executions" in shown
    assert shown.endswith("\r\x1b[K")


@pytest.mark.slow
def test_ctrl_c_ends_it_in_one_line(tmp_path: Path) -> None:
    results = write_examples(tmp_path / "results", seeds=range(120))
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tuneoff", "verify", str(results.path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, text=True, start_new_session=True)
    os.close(slave)
    shown = ""
    deadline = time.monotonic() + 60
    while "verified 4 of" not in shown and "verified 8 of" not in shown:
        shown += os.read(master, 1000).decode()
        assert time.monotonic() < deadline
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    with contextlib.suppress(OSError):  # EIO: all was read, and nobody writes any more
        while text := os.read(master, 1000):
            shown += text.decode()
    os.close(master)
    assert shown.rstrip().endswith("interrupted"), repr(shown[-500:])
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in shown


def test_a_folder_without_a_record_is_neither_verified_nor_not(call: Call, results: Results) -> None:
    """Its command was killed in its first run: nothing is there that could be computed again."""
    shutil.rmtree(results.path / "runs")
    (results.path / LOCK).write_text("1 killed")
    answer = call("verify", results.path)
    assert (answer.code, answer.out.splitlines()[-1]) == (7, f"NOT KNOWN: no run has a record; {results.path.resolve()}")
    assert json.loads(call("verify", results.path, "--json").out)["verified"] is None


def test_what_a_terminal_would_obey_is_shown_as_text(call: Call, results: Results) -> None:
    plan = json.loads((results.path / "matrix.json").read_text())
    plan["runs"][1]["skip_reason"] = "\x1b[2J\nVERIFIED: all \ud800"
    (results.path / "matrix.json").write_text(json.dumps(plan))
    answer = call("verify", results.path)
    assert (answer.code, answer.err) == (1, "")
    assert not any(text in answer.out for text in ("\x1b", "\nVERIFIED"))
