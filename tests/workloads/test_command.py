"""The workload `command`: a program's lines are epochs, and it ends with its trial."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import caller, write_file
from trial_runs import events_of, trial_context
from tuneoff.base.processes import command_line, is_alive, kill, run_to_end
from tuneoff.base.space import Float, SearchSpace
from tuneoff.errors import ExperimentError
from tuneoff.measure.spans import busy_ns
from tuneoff.record.events import schema
from tuneoff.record.run_record import AttemptRecord, EpochRecord
from tuneoff.run.trial.run_trial import Decision, TrialOutcome, run_trial
from tuneoff_workloads import command
from tuneoff_workloads.command import Command

TRAIN = """
import os, sys, time
import beside
name, rate, seed = sys.argv[1:]
open(name, "w").write(f"{os.getpid()}")
print("loading", flush=True)
for epoch in range(1, 4):
    print(f"loss={float(rate) / epoch} epoch={epoch}")  # not flushed: as most trainings print
if rate == "0.25":
    sys.exit(0)
if rate == "0.75":
    sys.exit("no data left")
time.sleep(600)
"""
ENDING, DONE = 0.75, 0.25  # of TRAIN: it ends by itself, with an error or with code 0
COMMAND = "tuneoff_workloads.command:Command"


def run(folder: Path, rate: float = 0.5, epochs: int = 3, stop_at: int = 99) -> tuple[TrialOutcome, int]:
    """Run a trial of TRAIN, and return its outcome and the program's pid."""
    pid, program = folder / "pid", folder / "train.py"
    program.write_text(TRAIN)
    (folder / "beside.py").touch()
    options = {"command": [sys.executable, str(program), str(pid), "{x}", "{seed}"]}
    context = trial_context(folder, workload=COMMAND, workload_options=options, epochs=epochs)

    def report(epoch: int, metrics: Mapping[str, float]) -> Decision:
        assert rate in (ENDING, DONE) or is_alive(int(pid.read_text()))
        return Decision.STOP if epoch >= stop_at else Decision.CONTINUE

    return run_trial(context, "t0", {"x": rate}, report), int(pid.read_text())


def test_each_line_of_pairs_is_an_epoch_and_the_program_ends_with_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_END_SECONDS", 0.1)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # as core sets it for its own processes
    outcome, pid = run(tmp_path)
    assert outcome == TrialOutcome(state="completed", epochs=3, value=0.5 / 3, best_epoch=3)
    assert [epoch.metrics for epoch in events_of(tmp_path, schema.Epoch)][1] == {"loss": 0.25, "epoch": 2.0}
    assert not is_alive(pid), command_line(pid)
    assert "did not end within 0.1 s after its last epoch" in capfd.readouterr().out


def test_a_stop_ends_the_program(tmp_path: Path) -> None:
    outcome, pid = run(tmp_path, stop_at=2)
    assert (outcome.state, outcome.epochs) == ("pruned", 2)
    assert not is_alive(pid)


ENDS = """
import pathlib, signal, sys, tempfile, time
way, folder = sys.argv[1:]
def end(number, frame):
    sys.exit(1)
if way in ("stubborn", "floods"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif way != "careless":
    signal.signal(signal.SIGTERM, end)
with tempfile.TemporaryDirectory(dir=folder) as own:
    pathlib.Path(own, "best.ckpt").touch()
    for epoch in range(1, 3):
        print(f"loss={1 / epoch}")
    while way == "floods":
        print("more")
    if way == "ends":
        time.sleep(0.2)
        print("saved\\n" * 20_000)  # more than a pipe holds
    else:
        print(f"loss={1 / 3}")
        while True:  # a signal that comes just before a sleep does not shorten it
            time.sleep(0.05)
"""


@pytest.mark.parametrize(
    ("way", "stop_at", "state", "is_left"),
    [
        ("ends", 99, "completed", False),  # after its last epoch, by itself
        ("goes on", 99, "completed", False),  # to a further epoch, so it is stopped at once
        ("goes on", 1, "pruned", False),
        ("careless", 1, "pruned", True),  # SIGTERM ends it without its `with`
        ("stubborn", 1, "pruned", True),
        ("floods", 99, "completed", True),
    ],
)
def test_a_program_ends_in_order_where_it_does_so_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, stop_at: int, state: str, is_left: bool
) -> None:
    monkeypatch.setattr(command, "_END_SECONDS", 0.1 if way == "floods" else 300.0)
    monkeypatch.setattr(command, "_STOP_SECONDS", 0.1 if way in ("stubborn", "floods") else 300.0)
    (tmp_path / "ends.py").write_text(ENDS)
    (tmp_path / "own").mkdir()
    options = {"command": [sys.executable, str(tmp_path / "ends.py"), way, str(tmp_path / "own")]}
    context = trial_context(tmp_path, workload=COMMAND, workload_options=options, epochs=2)
    begun = time.monotonic()
    outcome = run_trial(context, "t0", {}, lambda epoch, _: Decision.STOP if epoch >= stop_at else Decision.CONTINUE)
    assert time.monotonic() - begun < 240
    assert outcome.state == state
    assert [path.name for path in (tmp_path / "own").rglob("*.ckpt")] == ["best.ckpt"] * is_left


def test_the_end_of_a_program_is_busy_time_of_its_trial(tmp_path: Path) -> None:
    clock = f"{sys.executable} -c 'import time; print(time.monotonic_ns())' > {tmp_path}/clock"
    outcome = printed(tmp_path, f"echo loss=1; sleep 0.2; {clock}; exit 3")
    assert outcome.state == "completed"  # it has trained all epochs
    (epoch,), (reported,) = events_of(tmp_path, schema.Epoch), events_of(tmp_path, schema.Reported)
    (ended,) = events_of(tmp_path, schema.TrialEnded)
    record = EpochRecord(epoch=1, ended_ns=epoch.t, reported_ns=reported.t, train_ns=0, validate_ns=0, metrics={})
    attempt = AttemptRecord(attempt=1, state="completed", slot=0, started_ns=epoch.t, ended_ns=ended.t, epochs=(record,))
    program_ended_ns = int((tmp_path / "clock").read_text())
    assert program_ended_ns <= ended.t
    assert busy_ns(attempt) >= program_ended_ns - reported.t  # no framework is charged for it


def test_a_program_that_ends_early_fails_the_trial_with_its_last_words(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, rate=ENDING, epochs=4)
    assert outcome.state == "failed"
    assert outcome.cause == "TrialFailedError: the program ended with code 1 after epoch 3: no data left"  # and no line of ours


def test_a_program_that_ends_with_code_0_has_completed_its_training(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, rate=DONE, epochs=9)
    assert outcome == TrialOutcome(state="completed", epochs=3, value=0.25 / 3, best_epoch=3)


@pytest.mark.parametrize(("code", "state"), [(0, "completed"), (3, "failed")])
def test_a_training_ends_with_its_program_and_not_with_its_output(tmp_path: Path, code: int, state: str) -> None:
    script = f"echo loss={{x}}; setsid sleep 600 & echo $! >{tmp_path}/pid; echo last words; exit {code}"
    context = trial_context(tmp_path, workload=COMMAND, workload_options={"command": ["sh", "-c", script]}, epochs=2)
    begun = time.monotonic()
    try:
        outcome = run_trial(context, "t0", {"x": 0.5}, lambda epoch, metrics: Decision.CONTINUE)
        assert time.monotonic() - begun < 120, "what keeps the output open would last 600 s"
    finally:
        kill(int((tmp_path / "pid").read_text()))
    assert (outcome.state, outcome.epochs) == (state, 1)
    assert state == "completed" or "last words" in (outcome.cause or "")


def test_a_program_that_is_not_there_fails_the_trial(tmp_path: Path) -> None:
    context = trial_context(tmp_path, workload=COMMAND, workload_options={"command": ["./nowhere", "{x}"]})
    outcome = run_trial(context, "t0", {"x": 0.5}, lambda epoch, metrics: Decision.CONTINUE)
    assert outcome.state == "failed"
    assert "./nowhere cannot be started: No such file" in (outcome.cause or "")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["train", "{y}", "{x}"], "names 'y'"),
        (["train", "{x}", "{seed"], "a brace that is not a placeholder is written twice"),
        (["train"], "must use every dimension, but not 'x'"),
        (["train", "{x"], "a brace that is not a placeholder is written twice"),
        ("train {x}", "a list of texts"),
        ([], "a list of texts"),
    ],
)
def test_a_command_that_does_not_fit_the_space_is_refused(command: Any, words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        Command({"command": command}).check_space(SearchSpace({"x": Float(low=0.0, high=1.0)}))


def test_a_bundle_starts_no_program() -> None:
    assert Command.refuse_foreign({"command": json.loads('["rm", "-r", "x"]')}) == "it starts a program"


PROGRAM = """#!/bin/sh
sleep 600 &
echo $$ $! > "pids-$1"
case $1 in 0.5) wait;; esac
for epoch in 1 2 3 4; do echo "loss=$1"; done
case $1 in 0.75) wait;; esac
"""


def test_a_hyperparameter_named_seed_is_refused() -> None:
    with pytest.raises(ExperimentError, match="no dimension may be named so"):
        Command({"command": ["train", "{seed}"]}).check_space(SearchSpace({"seed": Float(low=0.0, high=1.0)}))


def test_a_progress_bar_is_no_epoch(tmp_path: Path) -> None:
    script = r"""printf 'loss=9\rloss=8\r99 %%\rloss=0.5\n'; printf 'loss=0.25\n'"""
    context = trial_context(tmp_path, workload=COMMAND, workload_options={"command": ["sh", "-c", script]}, epochs=2)
    outcome = run_trial(context, "t0", {"x": 0.5}, lambda epoch, metrics: Decision.CONTINUE)
    assert [epoch.metrics for epoch in events_of(tmp_path, schema.Epoch)] == [{"loss": 0.5}, {"loss": 0.25}]
    assert outcome.epochs == 2


def printed(folder: Path, script: str, objective: str = "loss", epochs: int = 1) -> TrialOutcome:
    """Run a trial of a shell script."""
    context = trial_context(
        folder, workload=COMMAND, workload_options={"command": ["sh", "-c", script]}, epochs=epochs, metric=objective
    )
    return run_trial(context, "t0", {"x": 0.5}, lambda epoch, metrics: Decision.CONTINUE)


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ("loss=-7.5e-05", {"loss": -7.5e-05}),
        ("loss = 0.5", {"loss": 0.5}),
        ("loss: 0.5", {"loss": 0.5}),
        ("loss=.98", {"loss": 0.98}),
        ("loss=1.", {"loss": 1.0}),
        ("loss=+1.5E+3", {"loss": 1500.0}),
        ("loss=0.5,", {"loss": 0.5}),
        ("loss: 0.5 | val/acc: 1e-3; epoch=2, n-best = 3", {"loss": 0.5, "val/acc": 0.001, "epoch": 2.0, "n-best": 3.0}),
        ("\033[32mloss\033[0m=0.5\r", {"loss": 0.5}),
    ],
)
def test_a_number_is_taken_as_programs_print_it(tmp_path: Path, line: str, metrics: dict[str, float]) -> None:
    outcome = printed(tmp_path, f"echo seed: 42; printf '{line}\n'")
    assert outcome.state == "completed", outcome.cause
    assert [epoch.metrics for epoch in events_of(tmp_path, schema.Epoch)] == [metrics]


RULE = "an epoch is a line of its output with nothing but names and decimal numbers, as `loss=0.5`"


@pytest.mark.parametrize(
    "line",
    ["loss=0,40", "loss=", "loss=1_000", "loss=0x1p3", "loss=50%", "Loss=0.5", "loss=0.5 lr=adam", "step 3 loss=0.5", "loss=٣"],
)
def test_another_line_is_no_epoch_and_the_refusal_names_it_with_the_rule(tmp_path: Path, line: str) -> None:
    outcome = printed(tmp_path, f"echo '{line}'; echo >&2 a warning")
    assert outcome.state == "failed"
    assert (outcome.cause or "").startswith(f"TrialFailedError: the program ended with code 0 after epoch 0, but {RULE}; ")
    assert (outcome.cause or "").endswith(f" {line!r}; print such a line after each epoch")


@pytest.mark.parametrize(
    ("script", "near"),
    [
        ("echo 'Epoch 7: loss=0.5 acc=0.9'; echo lr=0.1; echo early stopping", "the nearest line is 'Epoch 7: loss=0.5 acc=0.9'"),
        ("echo 'step 3: lr=0.1'; echo early stopping", "the nearest line is 'step 3: lr=0.1'"),
        ("echo >&2 'INFO loss=0.5'; echo >&2 done; echo bye", "the nearest line is on its standard error: 'INFO loss=0.5'"),
        ("echo bye; echo >&2 a warning", "its last line: 'bye'"),
    ],
)
def test_the_refusal_quotes_the_line_that_comes_nearest_to_an_epoch(tmp_path: Path, script: str, near: str) -> None:
    assert f"but {RULE}; {near}; print such a line" in (printed(tmp_path, script).cause or "")


@pytest.mark.parametrize("line", ["x=%sx", "x=1.%sx", "x=1 %s?", "x=1e%s;;"])
def test_a_long_line_is_looked_at_in_a_time_that_grows_with_its_length(line: str) -> None:
    program = "import sys; from tuneoff_workloads.command import _metrics; sys.exit(len(_metrics(sys.argv[1] % ('1' * 100_000))))"
    assert run_to_end([sys.executable, "-c", program, line], 60).code == 0


@pytest.mark.parametrize("number", ["nan", "1e400", "-inf"])
def test_a_number_that_is_not_finite_is_refused_as_one(tmp_path: Path, number: str) -> None:
    assert "loss must be a finite number, but epoch 1 gave" in (printed(tmp_path, f"echo loss={number}").cause or "")


BAR = r"""
import os, sys
for epoch in range(3):
    os.write(2, b"\r %d%%|##" % epoch)     # a bar on standard error, drawn anew and never ended
    os.write(1, b"lo")
    os.write(2, b"####|" + b"\xc3\0" + b"x" * 70000 * epoch)
    os.write(1, b"ss=%d\n" % epoch)
sys.exit("no \x1b[31mdata\x1b[0m" if sys.argv[1] == "fail" else 0)
"""


@pytest.mark.parametrize("end", ["end", "fail"])
def test_standard_error_never_gets_into_a_line_of_output(tmp_path: Path, end: str) -> None:
    (tmp_path / "bar.py").write_text(BAR)
    outcome = printed(tmp_path, f"{sys.executable} {tmp_path / 'bar.py'} {end}", epochs=3 + (end == "fail"))
    assert [epoch.metrics["loss"] for epoch in events_of(tmp_path, schema.Epoch)] == [0, 1, 2]
    if end == "fail":
        assert (outcome.cause or "").endswith("xxxno data")
        assert "\x1b" not in (outcome.cause or "")


@pytest.mark.slow
def test_a_shell_script_is_killed_on_time_out_and_stopped_by_a_pruner_with_what_it_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.sh").write_text(PROGRAM)
    file = {
        "workload": {"name": "command", "options": {"command": ["sh", "train.sh", "{x}"]}},
        "search_space": {"x": {"type": "float", "low": 0, "high": 1}},
        "objective": {"metric": "loss", "mode": "min"},
        "sampler": "fixed",
        "configurations": [{"x": 0.125}, {"x": 0.75}, {"x": 0.5}],
        "pruner": {"name": "asha", "first_rung_epochs": 1, "reduction_factor": 2},
        "budget": {"trials": 3, "epochs_per_trial": 4},
        "timeouts": {"trial_seconds": 4},
        "seeds": [0],
        "warm_up": False,
        "adapters": ["optuna"],  # what a training starts ends with its trial in each: tests/e2e/test_training_abilities.py
    }
    answer = caller(capsys)("compare", write_file(tmp_path / "script.yaml", file), "--no-report", "--json")
    assert [run["status"] for run in json.loads(answer.out)["runs"]] == ["done"], answer.err
    for record in tmp_path.glob("results/*/runs/*/*/run.json"):
        trials = {trial["configuration"]["x"]: trial for trial in json.loads(record.read_text())["trials"]}
        assert {x: trial["state"] for x, trial in trials.items()} == {0.125: "completed", 0.75: "pruned", 0.5: "timed_out"}
    pids = [int(pid) for path in tmp_path.glob("pids-*") for pid in path.read_text().split()]
    assert len(pids) == 2 * 3
    assert [pid for pid in pids if is_alive(pid)] == []
