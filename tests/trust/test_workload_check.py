"""`tuneoff check --workload`: an honest training conforms, and each planted defect is caught by its own check alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Call
from tuneoff.trust.workload_check.checks import CHECKS, WorkloadEvidence

pytestmark = pytest.mark.slow(first=True)
FILE = """
workload: "trust.planted_workloads:{name}"
adapters: [serial]
budget: {{trials: 2, epochs_per_trial: 4}}
timeouts: {{trial_seconds: 60}}
"""
DEFECTS = {
    "Missing": "metric.given",
    "Deciding": "metric.given",
    "Tiring": "epochs.planned",
    "EndsElsewhere": "seeds.repeat",
    "OnlyOnce": "trials.again",
    "Unseeded": "seeds.repeat",
    "Remembering": "trials.isolated",
    "Forgetting": "state.restores",
    "Restarting": "state.resumes",
    "Threaded": "threads.limited",
    "Leaving": "left.processes",
    "Overwriting": "left.files",
    "Costing": "cost.follows",
    "Peeking": "splits.disjoint",
}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the processes that train find the planted workloads."""
    monkeypatch.setenv("ENDED", str(tmp_path_factory.mktemp("ended") / "first"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))


def verdicts(call: Call, folder: Path, name: str, says: str = "") -> tuple[int, dict[str, str]]:
    """Return the exit code and the verdict of each check; `says`: what the text of one that failed must have."""
    (folder / "own.yaml").write_text(FILE.format(name=name))
    answer = call("check", "--workload", "own.yaml", "--json")
    checks = json.loads(answer.out)["checks"]
    assert not says or any(says in check["text"] for check in checks if check["verdict"] == "failed")
    return answer.code, {check["id"]: check["verdict"] for check in checks}


@pytest.mark.parametrize("name", ["Honest", "Careless", "Frugal"])
def test_an_honest_training_conforms(call: Call, tmp_path: Path, name: str) -> None:
    code, found = verdicts(call, tmp_path, name)
    assert code == 0
    assert list(found) == [check.id for check in CHECKS]
    assert found.pop("threads.limited") in ("passed", "not tested")  # on one processor, and on a busy machine
    assert found.pop("state.resumes") == ("not applicable" if name == "Careless" else "passed")
    assert found.pop("cost.follows") == ("passed" if name == "Frugal" else "not applicable")
    assert set(found.values()) == {"passed"}


def test_what_goes_with_the_run_is_told_and_is_no_defect(call: Call, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(FILE.format(name="Forgetful"))
    answer = call("check", "--workload", "own.yaml", "--only", "left.files", "--json")
    ((check),) = json.loads(answer.out)["checks"]
    assert (answer.code, check["id"], check["verdict"]) == (0, "left.files", "passed")
    assert "files in the temporary folder, which goes with its run, e.g. litter-" in check["text"]
    assert call("check", "--workload", "own.yaml", "--only", "left.files").out.endswith(
        f"PASSED: 1 of the {len(CHECKS)} checks were asked for: 1 passed\n"
    )


PROGRAM = """
import pathlib, sys, tempfile
with tempfile.TemporaryDirectory() as own:
    pathlib.Path(own, "best.ckpt").touch()
    for epoch in range(1, 5):
        print(f"val_loss={float(sys.argv[1]) / epoch}")
"""
COMMAND = """
workload: {name: command, options: {command: [python, train.py, "{x}"]}}
search_space: {x: {type: float, low: 0, high: 1}}
objective: {metric: val_loss, mode: min}
budget: {trials: 2, epochs_per_trial: 4}
adapters: [serial]
"""


def test_a_program_that_keeps_its_files_in_a_temporary_folder_conforms(call: Call, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "own.yaml").write_text(COMMAND)
    answer = call("check", "--workload", "own.yaml")
    assert answer.code == 0, answer.out
    assert answer.out.splitlines()[-1].startswith("own: CONFORMS")  # as its file is called
    (tmp_path / "train.py").write_text(f"{PROGRAM.replace('own, ', '')}\nimport time; time.sleep(600)\n")
    answer = call("check", "--workload", "own.yaml", "--only", "left.files", "epochs")
    assert (answer.code, "best.ckpt" in answer.out) == (1, True)
    assert re.search(r"trained all 4 epochs; then it took \d+\.\d s to end, as each trial will", answer.out)


@pytest.mark.parametrize(("name", "check"), DEFECTS.items())
def test_each_defect_is_caught_by_its_check_alone(call: Call, tmp_path: Path, name: str, check: str) -> None:
    code, found = verdicts(call, tmp_path, name, "(a fork of the training's process)" if name == "Leaving" else "")
    also = {"trials.isolated"} if name == "Unseeded" else set()
    if check == "threads.limited" and found[check] == "not tested":  # it had no processor for a second thread
        return
    assert {one for one, verdict in found.items() if verdict == "failed"} - also == {check}
    assert code == 1


@pytest.mark.parametrize(
    ("used", "idle", "verdict"), [(1.0, 1.0, "passed"), (1.9, 0.0, "failed"), (0.43, 0.0, "not tested"), (1.0, 0.1, "not tested")]
)
def test_on_a_busy_machine_the_use_of_few_processors_tells_nothing(
    used: float, idle: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    (threads,) = [check for check in CHECKS if check.id == "threads.limited"]
    seconds = 0.5
    training = {"seconds": seconds, "cpu_seconds": used * seconds, "idle_seconds": idle * seconds}
    about = {"planned": 1, "has_state": False, "has_test": False, "restores_training": False, "threads": 1, "metric": "loss"}
    assert threads.judge(WorkloadEvidence(**about, trainings={"first": training})).verdict == verdict  # type: ignore[arg-type]


def test_every_check_has_a_planted_defect() -> None:
    assert set(DEFECTS.values()) == {check.id for check in CHECKS}


@pytest.mark.parametrize(("name", "text"), [("Failing", "ValueError: no data"), ("Exiting", "SystemExit: 2")])
def test_a_training_that_fails_is_not_judged(call: Call, tmp_path: Path, name: str, text: str) -> None:
    code, found = verdicts(call, tmp_path, name)
    assert (code, set(found.values())) == (1, {"not tested"})
    (line,) = call("check", "--workload", "own.yaml").out.splitlines()
    assert f"{text} (planted_workloads.py:" in line


def test_one_check_that_could_not_be_made_tells_nothing(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine leaves no processor for a second thread: that is not a defect of the training."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    (tmp_path / "own.yaml").write_text(FILE.format(name="Honest"))
    alone = call("check", "--workload", "own.yaml", "--only", "threads.limited")
    assert (alone.code, ": NOT KNOWN, nothing failed, but not all was tested (not: threads.limited)" in alone.out) == (7, True)
    whole = call("check", "--workload", "own.yaml")
    assert (whole.code, ": CONFORMS, as far as was tested (not: threads.limited): " in whole.out) == (0, True)


@pytest.mark.parametrize("name", ["StopsAfterTwo", "StopsAfterFour"])
def test_a_training_that_ends_by_itself_conforms(call: Call, tmp_path: Path, name: str) -> None:
    (tmp_path / "own.yaml").write_text(FILE.format(name=name).replace("epochs_per_trial: 4", "epochs_per_trial: 9"))
    answer = call("check", "--workload", "own.yaml", "--json")
    found = {check["id"]: (check["verdict"], check["text"]) for check in json.loads(answer.out)["checks"]}
    epochs = {"StopsAfterTwo": 2, "StopsAfterFour": 4}[name]
    assert found["epochs.planned"] == ("passed", f"ends by itself after {epochs} of 9 epochs")
    assert answer.code == 0, found
    assert answer.err.splitlines()[0] == "first process: 1 training of up to 3 epochs"
    last = "last process: 1 training of up to 9 epochs"
    assert (answer.err.splitlines()[-1] == last) is (epochs > 3)


def test_a_training_that_ends_at_once_is_not_judged(call: Call, tmp_path: Path) -> None:
    code, found = verdicts(call, tmp_path, "StopsAtOnce")
    assert (code, set(found.values())) == (1, {"not tested"})
    (line,) = call("check", "--workload", "own.yaml").out.splitlines()
    assert "the training ended before its first epoch" in line


def test_a_function_has_no_state_to_restore(call: Call, tmp_path: Path) -> None:
    space = "search_space: {x: {type: float, low: 0, high: 1}}\nobjective: {metric: error, mode: min}\n"
    text = FILE.format(name="x").replace("trust.planted_workloads:x", "workloads.test_function:square")
    (tmp_path / "own.yaml").write_text(text.replace("epochs_per_trial: 4", "epochs_per_trial: 1") + space)
    answer = call("check", "--workload", "own.yaml", "--json")
    found = {check["id"]: check["verdict"] for check in json.loads(answer.out)["checks"]}
    assert found["state.restores"] == found["state.resumes"] == found["splits.disjoint"] == "not applicable"
    assert found["seeds.repeat"] == found["metric.given"] == "passed"


@pytest.mark.parametrize(("copied", "is_isolated"), [("train.own_copy", True), ("lambda value: value", False)])
def test_trainings_that_shared_their_options_would_not_be_isolated(tmp_path: Path, copied: str, is_isolated: bool) -> None:
    (tmp_path / "growing.py").write_text(
        "def train(configuration, layers):\n    layers.append(1)\n    return float(len(layers))\n"
    )
    training = {"configuration": {"x": 1}, "epochs": 1}
    request = {
        "target": "growing:train",
        "options": {"layers": [0]},
        "threads": 1,
        "objective": "value",
        "seeds": [1, 2],
        "planned_epochs": 1,
        "trainings": [training, training],
    }
    program = f"import json; from tuneoff.trust.workload_check import train; train.own_copy = {copied}"
    program = f"{program}; print(json.dumps(train.answer(json.loads(input()))))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=json.dumps(request), env=environment, capture_output=True, text=True, check=True)
    first, again = json.loads(done.stdout)["trainings"]
    assert (first["metrics"] == again["metrics"]) is is_isolated
