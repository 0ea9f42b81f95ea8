"""`tuneoff check --space`: its table, its JSON, its exit codes, its refusals, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from command_line import Answer, write_file
from trust.environments import processes_with
from trust.space_test.forked import draw_in_forks
from tuneoff.cli.main import main
from tuneoff.run.supervisor.leftovers import RESULTS_MARK

TESTS = Path(__file__).parents[2]
FILE: dict[str, Any] = {
    "workload": "null",
    "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}, "n": {"type": "int", "low": 1, "high": 3}},
    "budget": {"trials": 10},
    "adapters": ["serial"],
}
Verify = Callable[..., Answer]
_P_VALUE = re.compile(r"\b\d\.\d+(e-\d+)?\b|\b\d+e-\d+\b")


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of this test alone; its path is short, as sockets need it."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)
        monkeypatch.undo()


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let adapters draw in forks of this process: for what is said of the draws, whoever drew."""
    draw_in_forks(monkeypatch)


@pytest.fixture
def verify(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verify:
    """Return a function that verifies planted adapters by the names of their classes; nothing may be left afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))

    def run(*planted: str, words: tuple[str, ...] = (), **replaced: Any) -> Answer:
        path = write_file(tmp_path / "experiment.yaml", {**FILE, **replaced})
        adapters = [f"trust.space_test.planted:{name}" for name in planted]
        code = main(
            [
                "check",
                *adapters,
                *("--space", str(path)),
                *(() if "--draws" in words else ("--draws", "400")),
                *words,
            ]
        )
        assert list(temporary.iterdir()) == []
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


def of_folder(folder: Path) -> list[int]:
    """Return the living processes whose environment names something under `folder` as their results."""
    return processes_with(f"{RESULTS_MARK}={folder}")


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("planted", ["Honest", "StarvedEnds OneBeyondRefused", "TranslationBreaks DecodeBreaks", "OwnSpaceOnly"])
def test_what_is_said_of_draws(verify: Verify, planted: str, snapshot: SnapshotAssertion) -> None:
    answer = verify(*planted.split())
    masked = _P_VALUE.sub("P", f"{answer.out}exit code {answer.code}\n")
    assert re.sub(" {2,}", "  ", masked) == snapshot


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_repeats_in_a_small_space_are_not_tested(verify: Verify) -> None:
    answer = verify("OwnSpaceOnly", search_space={"n": {"type": "int", "low": 1, "high": 3}})
    note = "  note: repeats were not tested: the space is so small that configurations come again by chance"
    assert (answer.code, note in answer.out.splitlines()) == (0, True)


@pytest.mark.slow
def test_seeds_that_change_nothing_are_seen_in_other_processes(verify: Verify) -> None:
    answer = verify("IgnoresSeed", "Unseeded")
    assert answer.code == 1
    assert "  seeds: seeds 0 and 1 gave 100 equal configurations" in answer.out
    assert "  seeds: seed 0 was drawn twice, and 100 of 100 configurations differ" in answer.out


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_json_has_every_test_with_its_p_value(verify: Verify) -> None:
    answer = verify("Honest", "PassesOnAnother", words=("--json",))
    found = json.loads(answer.out)
    assert (answer.code, found["exit_code"], found["draws"], found["false_discovery_rate"]) == (1, 1, 400, 0.02)
    honest, other = found["adapters"]
    assert (honest["verdict"], other["verdict"]) == ("accepted", "rejected")
    assert {finding["check"] for finding in other["findings"]} == {"mapping"}
    assert (honest["source"], honest["seeds"], honest["draws"], honest["notes"]) == ("sampler", [0, 1, 2, 3], 400, [])
    names = [dimension["name"] for dimension in honest["dimensions"]]
    assert len(honest["pairs"]) == len(names) * (len(names) - 1) // 2
    tests = [test for dimension in honest["dimensions"] for test in dimension["tests"]] + honest["pairs"]
    assert sum(test["p"] is not None for test in tests) == honest["p_values"]
    assert [dimension["probe"] for dimension in honest["dimensions"]] == [False] * 2 + [True] * 10


@pytest.mark.parametrize(
    ("planted", "reason"),
    [
        ("Breaks", "  draws: RuntimeError: the sampler broke"),
        ("Dies", "  draws: the process that draws ended with exit code 3: no words from here on"),
        ("Short", "  draws: seed 0 gave only 99 of 100 configurations"),
    ],
)
def test_an_adapter_that_does_not_draw_is_a_failure_with_its_reason(verify: Verify, planted: str, reason: str) -> None:
    answer = verify(planted)
    assert answer.code == 1
    assert f"{planted}: FAILED: " in answer.out
    assert reason in answer.out.splitlines()
    assert [line for line in answer.err.splitlines() if not re.search(r": (drawing|testing)", line)] == []


@pytest.mark.slow
def test_a_sampler_that_hangs_is_ended_with_all_that_it_started(verify: Verify, temporary: Path) -> None:
    answer = verify("Hangs", words=("--timeout", "5"))
    assert answer.code == 1
    assert "  draws: after 5 s the process that draws had given 1 configuration; raise --timeout, or lower --draws" in answer.out
    assert of_folder(temporary) == []


@pytest.mark.parametrize("number", [signal.SIGTERM])
@pytest.mark.slow
def test_an_interruption_leaves_nothing(tmp_path: Path, temporary: Path, number: signal.Signals) -> None:
    path = write_file(tmp_path / "experiment.yaml", FILE)
    command = [sys.executable, "-m", "tuneoff", "check", "trust.space_test.planted:Hangs", "--space", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(temporary.glob("*/tmp/rubbish")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "Hangs: drawing, seed 1 of 4\ntuneoff: interrupted\n")
    assert list(temporary.iterdir()) == []
    assert of_folder(temporary) == []


@pytest.mark.slow
def test_a_killed_command_leaves_nothing(tmp_path: Path, temporary: Path) -> None:
    path = write_file(tmp_path / "experiment.yaml", FILE)
    command = [sys.executable, "-m", "tuneoff", "check", "serial", "--space", str(path)]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)})
    deadline = time.monotonic() + 60
    while not list(temporary.glob("*/runs/*/*/log.txt")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert list(temporary.iterdir())
    while (list(temporary.iterdir()) or of_folder(temporary)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(temporary.iterdir()) == []
    assert of_folder(temporary) == []


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_an_adapter_that_cannot_draw_is_judged_by_what_real_runs_received(verify: Verify) -> None:
    answer = verify("OnlyRuns", "OnlyRunsStarved", "OnlyRunsAnother")
    assert answer.code == 1
    note = "configurations that 200 trials of 2 real runs received, because the adapter cannot draw"
    assert f"  note: {note}: it has a sampler only while it runs" in answer.out
    assert "OnlyRuns: accepted: 200 configurations (seeds 0, 1)" in answer.out
    assert "OnlyRunsStarved: REJECTED: 200 configurations (seeds 0, 1)" in answer.out
    assert "distribution: probe_two (int [0, 1] step 1)" in answer.out
    lines = answer.out.splitlines()
    other = next(number for number, line in enumerate(lines) if line.startswith("OnlyRunsAnother: REJECTED: "))
    assert lines[other + 1] == "  received: 200 trials got another configuration than the one that was handed over"
    assert lines[other + 2].startswith("  note: ")
    assert "OnlyRuns: running trials, seed 2 of 2, for the adapter cannot draw without\n" in answer.err
    told = [line for line in answer.err.splitlines() if ": testing " in line]
    assert [line.partition("; ")[2] for line in told] == ["2 frameworks to come", "1 framework to come", ""]


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_each_search_space_of_a_matrix_is_verified_once(verify: Verify) -> None:
    matrix = {"search_space.n.high": [2, 3], "budget.trials": [5, 6]}
    answer = verify("Honest", matrix=matrix, seeds=[1, 2, 3])
    assert answer.code == 0
    verdicts = [line for line in answer.out.splitlines() if ": accepted: " in line]
    assert [line.split(":")[0] for line in verdicts] == ["Honest high=2", "Honest high=3"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--draws", "10"), "argument --draws: must be a whole number from 400, but got '10'"),
        (("--seed", "-1"), "argument --seed: must be a whole number from 0, but got '-1'"),
        (("--timeout", "0"), "argument --timeout: must be a whole number from 1, but got '0'"),
    ],
)
def test_a_wrong_number_is_one_line(verify: Verify, words: tuple[str, str], line: str) -> None:
    answer = verify(words=words)
    assert (answer.code, line in answer.line) == (2, True)
