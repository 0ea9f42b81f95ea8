"""What is left when the server stops, is killed, and comes back."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulated import node_process
from emulated.node_cluster import NAMESPACE, NodeCluster, conditions, node_cluster, script, state_of
from katib_emulation import jobs as job_controller
from katib_emulation.guardian import VARIABLE, NodeGuardian
from katib_emulation.store import DATABASE
from tuneoff.base.processes import is_alive
from waiting import until

# The second sleep leaves the container's session, where no signal to the process group reaches it.
SLEEPERS = """
setsid sleep 1000 &
echo $! > {0}/left.new && mv {0}/left.new {0}/left
echo $$ > {0}/pid.new && mv {0}/pid.new {0}/pid
exec sleep 1000
"""


def sleepers(folder: Path) -> list[str]:
    """Return a command of two processes that write their numbers to `pid` and `left`."""
    return script(folder, SLEEPERS.format(folder))


def numbers(folder: Path) -> list[int]:
    """Return the numbers of both processes, when they are there."""
    files = [folder / "pid", folder / "left"]
    until(lambda: all(file.exists() for file in files))
    return [int(file.read_text()) for file in files]


def running_pods(folder: Path) -> int:
    """Return how many pods the stored objects say to run: read in a copy, as the server alone may open its own."""
    copy = folder / "copy"
    copy.mkdir(exist_ok=True)
    for name in (DATABASE, f"{DATABASE}-wal"):
        shutil.copyfile(folder / name, copy / name)
    try:
        with contextlib.closing(sqlite3.connect(copy / DATABASE)) as database:
            return sum('"phase":"Running"' in str(row) for row in database.execute("SELECT object FROM objects"))
    except sqlite3.Error:  # it was copied in the middle of a write
        return 0
    finally:
        shutil.rmtree(copy)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of the node's."""
    process = subprocess.Popen(["sleep", "1000"], env={**os.environ, VARIABLE: "another"}, start_new_session=True)
    yield process
    process.kill()
    process.wait()


@contextlib.contextmanager
def killed_node(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node in a process of its own; it is killed at the end, if it still lives."""
    process = subprocess.Popen([sys.executable, node_process.__file__, str(folder)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_stopped_node_leaves_no_process_and_changes_no_status(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    with node_cluster(tmp_path) as cluster:
        cluster.submit(command=sleepers(tmp_path))
        cluster.pod_in("Running")
        pids = numbers(tmp_path)
        started = time.monotonic()
        cluster.node.stop()
        assert time.monotonic() - started < 10
        assert not any(map(is_alive, pids))
        assert is_alive(bystander.pid)
        assert cluster.pods()[0]["status"]["phase"] == "Running"


def test_a_killed_server_s_processes_die_with_it(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    first = NodeCluster(tmp_path)
    first.submit(command=sleepers(tmp_path))
    first.close()
    with killed_node(tmp_path) as server:
        pids = numbers(tmp_path)
        assert all(map(is_alive, pids))
        server.kill()
        until(lambda: not any(map(is_alive, pids)), seconds=5)
        assert is_alive(bystander.pid)


def test_a_pod_that_ran_when_the_server_was_killed_is_failed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_controller, "FIRST_BACKOFF_SECONDS", 0.05)
    first = NodeCluster(tmp_path)
    first.submit(command=sleepers(tmp_path))
    first.submit(
        "retried",
        command=script(tmp_path, f"test -e {tmp_path}/tried && exit 0; touch {tmp_path}/tried; sleep 1000", "r.sh"),
        backoffLimit=1,
    )
    first.close()
    with killed_node(tmp_path) as server:
        numbers(tmp_path)
        until((tmp_path / "tried").exists)
        until(lambda: running_pods(tmp_path) == 2)  # a pod that is not yet said to run is run
        server.send_signal(signal.SIGKILL)
        server.wait()
    with node_cluster(tmp_path) as cluster:
        ended = cluster.ended()
        assert conditions(ended)["Failed"] == "BackoffLimitExceeded"
        ending = state_of(cluster.pods()[0])["terminated"]
        assert (ending["exitCode"], ending["reason"]) == (137, "Error")
        assert "Complete" in conditions(cluster.ended("retried"))


def test_a_pod_that_waited_when_the_server_stopped_runs_with_the_next(tmp_path: Path) -> None:
    with node_cluster(tmp_path, cpus=1) as cluster:
        cluster.submit(container={"resources": {"requests": {"cpu": "2"}}})
        until(lambda: cluster.events("FailedScheduling"))
    with node_cluster(tmp_path, cpus=2) as cluster:
        assert "Complete" in conditions(cluster.ended())


def test_logs_and_ends_are_still_there_after_a_restart(tmp_path: Path) -> None:
    with node_cluster(tmp_path) as cluster:
        cluster.submit(command=["echo", "hello"])
        cluster.ended()
    with node_cluster(tmp_path) as cluster:
        assert cluster.log() == "hello\n"
        assert next(iter(cluster.node.follow_log(NAMESPACE, cluster.pods()[0]["metadata"]["name"]))) == b"hello\n"
        assert len(cluster.pods()) == 1


def test_folders_of_pods_that_are_gone_are_removed_by_the_next_server(tmp_path: Path) -> None:
    with node_cluster(tmp_path) as cluster:
        cluster.submit(command=["echo", "hello"])
        cluster.ended()
    forgotten = tmp_path / "pods" / "0123"
    forgotten.mkdir()
    with node_cluster(tmp_path) as cluster:
        until(lambda: not forgotten.exists())
        assert cluster.log() == "hello\n"


def test_a_dismissed_guardian_kills_the_marked_and_spares_the_others(bystander: subprocess.Popen[bytes]) -> None:
    guardian = NodeGuardian()
    marked = subprocess.Popen(["sleep", "1000"], env={**os.environ, VARIABLE: guardian.mark}, start_new_session=True)
    guardian.dismiss()
    guardian.dismiss()
    assert marked.wait(5) == -signal.SIGKILL
    assert is_alive(bystander.pid)
