"""SIGKILL of `tuneoff compare` in the middle of a run: nothing is left after 5 s, and a resume completes."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

import daemons
from builders.specs import toy_spec
from daemons import daemon_pid
from e2e.following import Following
from e2e.matrix_runs import finish, has_trained, start
from e2e.random_kills import GONE_WITHIN_SECONDS
from tuneoff.base.processes import GUARDIAN, command_line, descendants, kill
from tuneoff.measure.stored import read_runs
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Epoch, Event, Flag, GoalMet, TrialEnded
from tuneoff.run.lifecycle import GUARDIAN_SECONDS
from tuneoff.trust.verify.results import verify
from tuneoff_adapters.optuna.adapter import OptunaAdapter

pytestmark = pytest.mark.slow(first=True)

E = TypeVar("E", bound=Event)
MATRIX = """
name: killed
workload: {workload}
search_space:
  x: {{type: float, low: 0.0, high: 1.0}}
sampler: random
budget: {{trials: 4, epochs_per_trial: 3}}
workers: {{count: 2}}
adapters: [{adapter}]
warm_up: false
"""
SLEEP = "{name: sleep, options: {epoch_seconds: 0.2}}"
DAEMONIC = "{{name: 'e2e.daemonic_workload:Daemonic', options: {{epoch_seconds: 0.2, folder: {folder!r}}}}}"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(daemons.__file__).parent), prepend=os.pathsep)


def wait_until(condition: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def killed_in_trials(
    file: Path, results: Path, is_time: Callable[[Path], object] = has_trained, *, guardian_too: bool = False
) -> Following:
    """Start the matrix, kill it once it has trained, or at another moment, and return what follows its processes."""
    following = Following()
    process = start(file, results)
    try:
        wait_until(lambda: is_time(results) or process.poll() is not None, 60)
        following.look(results)
        kinds = {line.partition(" ")[0] for line in following.left()}
        assert kinds >= {"process", "folder"}  # the probe sees what must go
    finally:
        guardians = [pid for pid in descendants(process.pid) if guardian_too and GUARDIAN in command_line(pid, None)]
        for pid in (*guardians, process.pid):
            kill(pid)
        assert process.wait() == -9  # it had not ended before
    assert len(guardians) == guardian_too
    return following


SERVERS = {"storage": {"kind": "postgresql", "managed": True}}


@pytest.mark.parametrize("adapter", ["ray-tune", f"{{name: optuna, options: {SERVERS}}}"])
def test_a_command_killed_in_mid_run_leaves_nothing_and_resumes_to_its_end(adapter: str, tmp_path: Path) -> None:
    if adapter != "ray-tune" and (reason := OptunaAdapter.refuse(toy_spec("optuna", options=SERVERS))):
        pytest.skip(reason)
    file, results = tmp_path / "matrix.yaml", tmp_path / "results"
    file.write_text(MATRIX.format(adapter=adapter, workload=SLEEP))
    following = killed_in_trials(file, results)
    wait_until(lambda: not following.left(), GONE_WITHIN_SECONDS)
    assert following.left() == []
    finish(file, results)
    assert sorted(record.status for record in read_runs(results)) == ["done", "interrupted"]


@pytest.mark.parametrize("guardian_too", [False, True])
def test_daemons_of_a_workload_are_ended_with_its_killed_command(tmp_path: Path, guardian_too: bool) -> None:
    file, results = tmp_path / "matrix.yaml", tmp_path / "results"
    file.write_text(MATRIX.format(adapter="serial", workload=DAEMONIC.format(folder=str(tmp_path / "daemons"))))
    (tmp_path / "daemons").mkdir()
    following = killed_in_trials(file, results, guardian_too=guardian_too)
    if guardian_too:  # its coordinator ends them, and itself
        wait_until(lambda: not [line for line in following.left() if line.startswith("process")], GUARDIAN_SECONDS + 5)
        left = {line.partition(" ")[0] for line in following.left()}
        assert left <= {"folder", "cgroup"}  # the next command removes them
        assert "folder" in left
        finish(file, results)
    wait_until(lambda: not following.left(), GONE_WITHIN_SECONDS)
    assert following.left() == []


def test_the_daemons_of_a_workload_end_with_their_trial_and_are_no_leftovers_of_the_run(tmp_path: Path) -> None:
    file, results = tmp_path / "matrix.yaml", tmp_path / "results"
    file.write_text(MATRIX.format(adapter="serial", workload=DAEMONIC.format(folder=str(tmp_path / "daemons"))))
    (tmp_path / "daemons").mkdir()
    following = Following()
    finish(file, results)
    following.look(results)
    assert following.left() == []
    (events,) = results.glob("runs/*/*/events")
    texts = [event.text for _, event in EventLog(events).merged() if isinstance(event, Flag) and event.name == "left_behind"]
    pids = {daemon_pid(note) for note in (tmp_path / "daemons").iterdir()}
    assert texts == []
    assert len(pids) >= 4  # of the trials, and of the test


AT_GOAL = """
name: goal
workload: {name: sleep, options: {epoch_seconds: 0.2}}
search_space: {x: {type: float, low: 0.0, high: 1.0}}
sampler: fixed
configurations: [{x: 0.9}, {x: 0.8}, {x: 0.7}, {x: 0.6}, {x: 0.5}, {x: 0.0}, {x: 0.4}, {x: 0.3}, {x: 0.2}, {x: 0.1}]
objective: {goal: 0.001, stop: true}
workers: {count: 2}
warm_up: false
"""
MET_BY = "t00005"


def of_kind(results: Path, kind: type[E]) -> list[E]:
    """Return the events of a kind in the folder's executions."""
    return [event for events in results.glob("runs/*/*/events") for _, event in EventLog(events) if isinstance(event, kind)]


@pytest.mark.parametrize(("adapter", "moment"), [("serial", "before"), ("optuna", "after"), ("syne-tune", "before")])
def test_a_run_with_a_goal_keeps_its_trials_when_its_command_is_killed_and_ends_at_the_goal_when_resumed(
    adapter: str, moment: str, tmp_path: Path
) -> None:
    file, results = tmp_path / "matrix.yaml", tmp_path / "results"
    file.write_text(f"{AT_GOAL}adapters: [{adapter}]\n")
    is_time = {
        "before": lambda folder: len(of_kind(folder, TrialEnded)) >= 3,
        "after": lambda folder: of_kind(folder, GoalMet),
    }[moment]
    following = killed_in_trials(file, results, is_time)
    wait_until(lambda: not following.left(), GONE_WITHIN_SECONDS)
    assert following.left() == []
    ended = {end.trial for end in of_kind(results, TrialEnded) if end.state == "completed"}
    trained = {epoch.trial for epoch in of_kind(results, Epoch)}  # the end of one may have been about to be written
    assert len(ended) >= 3
    finish(file, results)
    killed, resumed = sorted(read_runs(results), key=lambda record: record.status != "interrupted")
    completed = {trial.trial for trial in killed.trials if trial.state == "completed"}
    assert killed.status == "interrupted"
    assert ended <= completed <= trained
    assert resumed.status == "done"
    assert resumed.best is not None
    assert resumed.best.trial == MET_BY
    states = Counter(trial.state for trial in resumed.trials)
    assert 5 <= states["completed"] <= states.total()  # the other worker was at one before or after it
    assert 6 <= states.total() <= 6 + 2
    assert not states.keys() - {"completed", "cancelled"}
    assert verify(results).is_verified
