"""SIGKILL of `tuneoff compare` in the middle of a run: nothing is left after 5 s, and a resume completes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

import daemons
from builders.specs import toy_spec
from daemons import daemon_pid
from e2e.faulty_cluster import faulty_cluster
from e2e.following import Following
from e2e.matrix_runs import errors_of, finish, has_trained, start, write_matrix
from e2e.random_kills import GONE_WITHIN_SECONDS
from tuneoff.base.layout import OUTSIDE
from tuneoff.base.processes import GUARDIAN, command_line, descendants, kill
from tuneoff.measure.stored import read_runs
from tuneoff.record.endings import KILLED
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Epoch, Event, Flag, GoalMet, TrialEnded
from tuneoff.run.lifecycle import GUARDIAN_SECONDS
from tuneoff.trust.verify.results import verify
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from waiting import until

pytestmark = pytest.mark.slow(first=True)

E = TypeVar("E", bound=Event)
SERVERS = {"name": "optuna", "options": {"storage": {"kind": "postgresql", "managed": True}}}
CUT_AND_DONE = ["done", "interrupted"]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(daemons.__file__).parent), prepend=os.pathsep)


def killed_in_trials(
    file: Path, results: Path, is_time: Callable[[Path], object] | None = None, *, guardian_too: bool = False
) -> Following:
    """Start or resume the matrix, kill it once a new execution has trained, or at another moment; return what follows it."""
    following, known = Following(), set(results.glob("runs/*/*/events"))
    process = start(file, results)
    try:
        is_time = is_time or (lambda folder: has_trained(folder, besides=known))
        until(lambda: is_time(results) or process.poll() is not None, 60)
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


def statuses(results: Path) -> list[str]:
    return sorted(record.status for record in read_runs(results))


@pytest.mark.parametrize("adapter", ["ray-tune", "katib@emulated", SERVERS], ids=str)
def test_a_command_killed_in_mid_run_leaves_nothing_and_resumes_to_its_end_though_its_tmpdir_is_long(
    adapter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if adapter is SERVERS and (reason := OptunaAdapter.refuse(toy_spec("optuna", options=adapter["options"]))):
        pytest.skip(reason)
    (temporary := tmp_path / ("x" * 100)).mkdir()  # too long for sockets
    monkeypatch.setenv("TMPDIR", str(temporary))
    file, results = write_matrix(tmp_path, adapters=[adapter])
    following = killed_in_trials(file, results)
    until(lambda: not following.left(), GONE_WITHIN_SECONDS)
    finish(file, results)
    assert statuses(results) == CUT_AND_DONE
    assert list(temporary.iterdir()) == []
    done, cut = sorted(read_runs(results), key=lambda record: record.status)
    names = [trial.framework_id or "" for trial in done.trials]
    assert not [name for name in names if cut.execution_id in name]  # else Katib would mix them up


@pytest.mark.parametrize("guardian_too", [False, True])
def test_daemons_of_a_workload_are_ended_with_its_killed_command(tmp_path: Path, guardian_too: bool) -> None:
    file, results = daemonic(tmp_path)
    following = killed_in_trials(file, results, guardian_too=guardian_too)
    if guardian_too:  # its coordinator ends them, and itself
        until(lambda: not [line for line in following.left() if line.startswith("process")], GUARDIAN_SECONDS + 5)
        left = {line.partition(" ")[0] for line in following.left()}
        assert left <= {"folder", "cgroup"}  # the next command removes them
        assert "folder" in left
        finish(file, results)
    until(lambda: not following.left(), GONE_WITHIN_SECONDS)


def daemonic(folder: Path) -> tuple[Path, Path]:
    (folder / "daemons").mkdir()
    options = {"epoch_seconds": 0.2, "folder": str(folder / "daemons")}
    return write_matrix(folder, workload={"name": "e2e.daemonic_workload:Daemonic", "options": options})


def test_the_daemons_of_a_workload_end_with_their_trial_and_are_no_leftovers_of_the_run(tmp_path: Path) -> None:
    file, results = daemonic(tmp_path)
    following = Following()
    finish(file, results)
    following.look(results)
    assert following.left() == []
    assert [flag.text for flag in of_kind(results, Flag) if flag.name == "left_behind"] == []
    assert len({daemon_pid(note) for note in (tmp_path / "daemons").iterdir()}) >= 4  # of the trials, and of the test


def of_kind(results: Path, kind: type[E]) -> list[E]:
    """Return the events of a kind in the folder's executions."""
    return [event for events in results.glob("runs/*/*/events") for _, event in EventLog(events) if isinstance(event, kind)]


MET_BY = "t00005"
AT_GOAL: dict[str, Any] = {
    "sampler": "fixed",
    "configurations": [{"x": x} for x in (0.9, 0.8, 0.7, 0.6, 0.5, 0.0, 0.4, 0.3, 0.2, 0.1)],
    "objective": {"goal": 0.001, "stop": True},
    "budget": {},
}


@pytest.mark.parametrize(("adapter", "is_met"), [("serial", False), ("optuna", True)])
def test_a_run_with_a_goal_keeps_its_trials_when_its_command_is_killed_and_ends_at_the_goal_when_resumed(
    adapter: str, is_met: bool, tmp_path: Path
) -> None:
    file, results = write_matrix(tmp_path, adapters=[adapter], **AT_GOAL)
    following = killed_in_trials(
        file, results, lambda folder: of_kind(folder, GoalMet) if is_met else len(of_kind(folder, TrialEnded)) >= 3
    )
    until(lambda: not following.left(), GONE_WITHIN_SECONDS)
    ended = {end.trial for end in of_kind(results, TrialEnded) if end.state == "completed"}
    trained = {epoch.trial for epoch in of_kind(results, Epoch)}  # the end of one may have been about to be written
    assert len(ended) >= 3
    finish(file, results)
    resumed, killed = sorted(read_runs(results), key=lambda record: record.status)
    completed = {trial.trial for trial in killed.trials if trial.state == "completed"}
    assert ended <= completed <= trained
    assert statuses(results) == CUT_AND_DONE
    assert resumed.best is not None
    assert resumed.best.trial == MET_BY
    states = Counter(trial.state for trial in resumed.trials)
    assert 5 <= states["completed"] <= states.total()  # the other worker was at one before or after it
    assert 6 <= states.total() <= 6 + 2
    assert not states.keys() - {"completed", "cancelled"}
    assert verify(results).is_verified


def test_in_a_cluster_a_killed_run_is_undeployed_by_the_guardian_or_by_the_next_command(tmp_path: Path) -> None:
    with faulty_cluster(tmp_path / "cluster") as cluster:
        file, results = write_matrix(
            tmp_path, adapters=[{"name": "katib", "platform": "kubernetes", "options": cluster.options(api_seconds=2)}]
        )
        killed_in_trials(file, results)
        (first,) = results.glob("runs/*/*")
        until(lambda: cluster.namespaces() == [], 10.0)  # no further command was needed
        until(lambda: not (first / OUTSIDE).exists(), 5.0)

        # the guardian is killed too, or the machine stops: the next command does it, or says what is left while it cannot
        killed_in_trials(file, results, guardian_too=True)
        (second,) = {*results.glob("runs/*/*")} - {first}
        assert cluster.namespaces() == [f"tuneoff-{second.name}"]
        cluster.proxy.refuse()
        assert start(file, results).wait(60) == 1  # the new run finds no cluster
        errors = errors_of(results).read_text().splitlines()
        (line,) = [line for line in errors if "an earlier command left, and" in line]
        assert f"kubectl delete namespace tuneoff-{second.name}" in line
        cluster.proxy.restore()
        finish(file, results)
        assert cluster.namespaces() == []
    assert statuses(results) == ["done", "failed", "interrupted", "interrupted"]
    cut = [record for record in read_runs(results) if record.status == "interrupted"]
    assert {record.execution_id for record in cut} == {first.name, second.name}
    # whatever un-deploy met after the kill: of the second it failed while the cluster was away
    ends = {(end.state, end.cause, end.charged) for record in cut for end in record.trials}
    assert ends - {("completed", None, None)} == {("cancelled", KILLED.reason, "user")}
