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

from builders.event_logs import example_b
from builders.results_folders import Results, edit, write_examples
from command_line import Call
from tuneoff.base.layout import LOCK
from tuneoff.base.output import write_json


def damaged(results: Results) -> Path:
    path = results.folder(results.plan.runs[0].spec) / "run.json"
    edit(path, lambda text: text.replace('"time.jct": {"value":176000.0', '"time.jct": {"value":175000.0'))
    return path


def test_a_sound_folder_is_verified_with_what_was_checked(call: Call, results: Results) -> None:
    answer = call("verify", results.path)
    assert (answer.code, answer.err) == (0, "")
    first, last = answer.out.splitlines()
    stated = "not recomputable, taken as end.json states it: versions, environment"
    assert first == f"{stated}; as matrix.json does: name, path, content, labels"
    assert last.startswith("VERIFIED: 2 runs, 6 trials, ")
    assert last.endswith(f"values; integers are equal, decimal numbers to 1e-09; {results.path}")


def test_the_newest_folder_is_the_default(call: Call, results: Results) -> None:
    assert call("verify").out.rstrip().endswith(str(results.path))


def test_each_value_that_differs_is_a_line(call: Call, results: Results) -> None:
    path = damaged(results)
    answer = call("verify", results.path)
    assert (answer.code, answer.err) == (1, "")
    where = path.parent.relative_to(results.path)
    assert answer.out.splitlines()[0] == f"{where}: metrics.time.jct.value: stored 175000.0, recomputed 176000.0"
    assert answer.out.splitlines()[-1].startswith("NOT VERIFIED: 1 problem in 1 place; checked: 2 runs, 6 trials, ")


def test_a_broken_history_is_a_line_and_a_drawing(call: Call, tmp_path: Path) -> None:
    log, spec = example_b()
    log.submit("3", 31, x=0.3)  # once more
    results = Results(tmp_path / "broken", [spec])
    where = results.add_log(spec, log).relative_to(results.path)
    lines = call("verify", results.path).out.splitlines()
    assert lines[0] == f"{where}: handed-out-twice: attempt 1 of trial 3 was handed out 2 times"
    assert lines[1:-2] == [
        "       seconds  coordinator 100     trial 104 (slot 0)",
        "        30.000  3#1 submitted       |",
        "        31.000  3#1 submitted       |                   <--",
        "        32.000  |                   3#1 started",
        "        40.000  |                   3#1 reported 2",
        "        43.000  3#1 ended pruned    |",
    ]
    assert lines[-1].startswith("NOT VERIFIED: 1 problem in 1 place; ")
    (problem,) = json.loads(call("verify", results.path, "--json").out)["problems"]
    assert (problem["check"], problem["what"]) == ("history", "handed-out-twice")
    assert [(event["seconds"], event["event"], event["is_wrong"]) for event in problem["events"]][:2] == [
        (30.0, "submitted", False),
        (31.0, "submitted", True),
    ]


def test_json_stays_json_where_a_stored_number_is_infinite(call: Call, results: Results) -> None:
    path = results.folder(results.plan.runs[0].spec) / "run.json"
    edit(path, lambda text: text.replace('"time.jct": {"value":176000.0', '"time.jct": {"value":1e999'))
    found = json.loads(call("verify", results.path, "--json").out, parse_constant=pytest.fail)
    assert [note["text"].partition(" is damaged")[0] for note in found["notes"]] == ["run.json"]


def test_json_shows_control_characters_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"\x7f": "\x9b"})
    assert capsys.readouterr().out == '{\n "\\u007f": "\\u009b"\n}\n'
    write_json("\u202e\u2066")
    assert capsys.readouterr().out == '"\\u202e\\u2066"\n'


def test_json_has_what_was_checked_and_each_problem(call: Call, results: Results) -> None:
    sound = json.loads(call("verify", results.path, "--json").out)
    assert (sound["verified"], sound["exit_code"], sound["problems"]) == (True, 0, [])
    assert (sound["checked"]["runs"], sound["checked"]["trials"]) == (2, 6)
    assert sound["not_recomputable"] == {
        "everywhere": ["versions", "environment"],
        "plan": ["name", "path", "content", "labels"],
        "executions": {},
    }
    path = damaged(results)
    answer = call("verify", results.path, "--json")
    found = json.loads(answer.out)
    assert (answer.code, found["verified"], found["exit_code"]) == (1, False, 1)
    assert found["problems"] == [
        {
            "check": "value",
            "where": path.parent.relative_to(results.path).as_posix(),
            "what": "metrics.time.jct.value",
            "text": "stored 175000.0, recomputed 176000.0",
            "stored": 175000.0,
            "recomputed": 176000.0,
        }
    ]


def test_a_flood_of_problems_is_cut_and_counted(call: Call, results: Results) -> None:
    folder = results.folder(results.plan.runs[0].spec)
    next((folder / "events").glob("worker-*")).unlink()
    answer = call("verify", results.path)
    lines = answer.out.splitlines()
    assert ": events/worker-101-1012000000000.jsonl: is missing" in lines[0]
    assert len([line for line in lines if line.startswith("runs/")]) == 21
    assert "further problems; --json shows more" in answer.out


@pytest.mark.slow
def test_what_a_terminal_would_obey_is_shown_as_text(results: Results) -> None:
    plan = json.loads((results.path / "matrix.json").read_text())
    plan["runs"][1]["skip_reason"] = "\x1b[2J\nVERIFIED: all \ud800"
    (results.path / "matrix.json").write_text(json.dumps(plan))
    for more in ([], ["--json"]):
        command = [sys.executable, "-m", "tuneoff", "verify", str(results.path), *more]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (1, b"")
        assert b"\x1b" not in done.stdout
        assert b"\nVERIFIED" not in done.stdout
    json.loads(done.stdout)


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
    results = write_examples(tmp_path / "results", seeds=range(300))
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
