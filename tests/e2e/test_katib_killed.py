"""SIGKILL of `tuneoff compare` in the middle of a Katib run: nothing is left, here or in a cluster, and a resume completes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.faulty_cluster import FaultyCluster, faulty_cluster
from e2e.following import Following
from e2e.matrix_runs import finish, start
from e2e.random_kills import GONE_WITHIN_SECONDS
from tuneoff.base.layout import OUTSIDE
from tuneoff.base.processes import children, command_line, with_mark
from tuneoff.measure.stored import read_runs
from tuneoff.record.endings import KILLED
from tuneoff.record.run_record import RunRecord
from tuneoff.run.supervisor.leftovers import RESULTS_MARK, remembered

pytestmark = pytest.mark.slow(first=True)

GUARDIAN = "tuneoff.run.supervisor.guardian"
WAIT_SECONDS = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FaultyCluster]:
    with faulty_cluster(tmp_path / "cluster") as cluster:
        yield cluster


def experiment_file(folder: Path, entry: dict[str, Any]) -> Path:
    content = {
        "workload": {"name": "sleep", "options": {"epoch_seconds": 0.2}},
        "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
        "sampler": "random",
        "budget": {"trials": 4, "epochs_per_trial": 4},
        "workers": {"count": 2},
        "adapters": [entry],
        "warm_up": False,
    }
    path = folder / "experiment.yaml"
    path.write_text(json.dumps(content))
    return path


def until(is_so: Callable[[], bool], seconds: float = WAIT_SECONDS) -> float:
    """Wait until it is so; return how many seconds that took."""
    started = time.monotonic()
    while not is_so():
        assert time.monotonic() - started < seconds
        time.sleep(0.05)
    return time.monotonic() - started


def leftovers(results: Path) -> list[str]:
    """Return what is left of a matrix here; the processes of a cluster, which this one started, carry no mark."""
    found = [f"process {pid}" for pid in with_mark(RESULTS_MARK, str(results.resolve()))]
    for execution in results.glob("runs/*/*"):
        found += [f"{kind} {value}" for kind, value in remembered(execution) if os.path.exists(value)]
    return found


def kill_in_mid_run(file: Path, results: Path, *, with_guardian: bool = False) -> Path:
    """Start or resume, kill once a new execution trains, wait until nothing of it is left here, and return its folder."""
    before = set(results.glob("runs/*/*"))
    process = start(file, results)
    try:
        until(lambda: any(trains(folder) for folder in set(results.glob("runs/*/*")) - before))
        assert {line.partition(" ")[0] for line in leftovers(results)} >= {"process", "folder"}  # the probe sees what must go
        if with_guardian:
            for pid in [pid for pid in children(process.pid) if GUARDIAN in command_line(pid)]:
                os.kill(pid, signal.SIGKILL)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
    assert process.returncode == -signal.SIGKILL  # it had not ended before
    if not with_guardian:  # else the next command cleans up
        until(lambda: leftovers(results) == [], GONE_WITHIN_SECONDS)
    (folder,) = set(results.glob("runs/*/*")) - before
    return folder


def trains(folder: Path) -> bool:
    return any(b'"type":"epoch"' in path.read_bytes() for path in folder.glob("events/*.jsonl"))


def records(results: Path) -> dict[str, list[RunRecord]]:
    found: dict[str, list[RunRecord]] = {}
    for record in read_runs(results):
        found.setdefault(record.status, []).append(record)
    return found


def test_on_emulated_a_killed_run_leaves_nothing_and_a_resume_completes(tmp_path: Path) -> None:
    file, results = experiment_file(tmp_path, {"name": "katib", "platform": "emulated"}), tmp_path / "results"
    following = Following()
    folder = kill_in_mid_run(file, results)
    until(lambda: following.left() == [], GONE_WITHIN_SECONDS)
    finish(file, results)
    found = records(results)
    assert {status: len(of) for status, of in found.items()} == {"interrupted": 1, "done": 1}
    assert found["interrupted"][0].execution_id == folder.name
    (done,) = found["done"]
    assert [trial.state for trial in done.trials] == ["completed"] * 4
    framework_ids = {trial.framework_id for trial in done.trials}
    assert not any(folder.name in (name or "") for name in framework_ids)  # another name, so Katib cannot mix them up
    assert leftovers(results) == []


def test_in_a_cluster_a_killed_run_is_undeployed_by_the_guardian_or_by_the_next_command(
    tmp_path: Path, cluster: FaultyCluster
) -> None:
    entry = {"name": "katib", "platform": "kubernetes", "options": cluster.options(api_seconds=2)}
    file, results = experiment_file(tmp_path, entry), tmp_path / "results"
    first = kill_in_mid_run(file, results)
    until(lambda: cluster.namespaces() == [], 10.0)  # no further command was needed
    until(lambda: not (first / OUTSIDE).exists(), 5.0)

    # the guardian is killed too, or the machine stops: the next command does it, or says what is left while it cannot
    second = kill_in_mid_run(file, results, with_guardian=True)
    assert cluster.namespaces() == [f"tuneoff-{second.name}"]
    cluster.proxy.refuse()
    resumed = start(file, results)
    _, errors = resumed.communicate(timeout=WAIT_SECONDS)
    assert resumed.returncode == 1  # the new run finds no cluster
    (line,) = [line for line in errors.decode().splitlines() if "an earlier command left, and" in line]
    assert f"kubectl delete namespace tuneoff-{second.name}" in line
    cluster.proxy.restore()
    finish(file, results)
    assert cluster.namespaces() == []
    assert leftovers(results) == []
    found = records(results)
    assert {status: len(of) for status, of in found.items()} == {"interrupted": 2, "failed": 1, "done": 1}
    assert {record.execution_id for record in found["interrupted"]} == {first.name, second.name}
    # whatever un-deploy met after the kill: of the second it failed while the cluster was away
    ends = {(end.state, end.cause, end.charged) for record in found["interrupted"] for end in record.trials}
    assert ends - {("completed", None, None)} == {("cancelled", KILLED.reason, "user")}
