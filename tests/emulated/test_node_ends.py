"""Ends that somebody brings about: memory, deletion, the end of the server."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from emulated.node_cluster import NAMESPACE, NodeCluster, conditions, script, state_of
from katib_emulation.objects import JOBS, PODS, StatusError
from tuneoff.base.processes import is_alive
from waiting import until

ANNOUNCE_AND_SLEEP = "echo $$; exec sleep 1000"


def pid_of(cluster: NodeCluster) -> int:
    cluster.pod_in("Running")
    return int(until(lambda: cluster.log().strip()))


def allocating(folder: Path, megabytes: int, seconds: float) -> list[str]:
    (folder / "allocate.py").write_text(f"block = b'x' * {megabytes * 10**6}\nimport time\ntime.sleep({seconds})\n")
    return ["sh", "-c", f"{sys.executable} {folder}/allocate.py && echo done"]


def test_a_container_over_its_memory_limit_is_killed(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=allocating(tmp_path, 200, 1000), container={"resources": {"limits": {"memory": "100Mi"}}})
    assert "Failed" in conditions(cluster.ended())
    ending = state_of(cluster.pods()[0])["terminated"]
    assert (ending["reason"], ending["exitCode"]) == ("OOMKilled", 137)


def test_a_container_within_its_memory_limit_is_not_killed(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=allocating(tmp_path, 20, 0.3), container={"resources": {"limits": {"memory": "100Mi"}}})
    assert "Complete" in conditions(cluster.ended())
    assert cluster.log() == "done\n"


def test_a_deleted_pod_ends_by_sigterm_and_its_job_fails(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=script(tmp_path, ANNOUNCE_AND_SLEEP))
    pid = pid_of(cluster)
    changes = cluster.store.subscribe(PODS)
    cluster.store.delete(PODS, cluster.pods()[0]["metadata"]["name"], NAMESPACE)
    ended = cluster.ended()
    assert conditions(ended)["Failed"] == "BackoffLimitExceeded"
    assert ended["status"]["failed"] == 1
    assert not is_alive(pid)
    until(lambda: not cluster.pods())
    seen = [changes.next(1) for _ in range(4)]
    [code] = {
        state_of(change.object)["terminated"]["exitCode"]
        for change in seen
        if change and change.object["status"]["phase"] == "Failed"
    }
    assert code == 143


def test_the_command_s_children_get_the_sigterm_and_may_end_in_order(cluster: NodeCluster, tmp_path: Path) -> None:
    (tmp_path / "polite.py").write_text(
        "import signal, sys, time\n"
        "def leave(*_):\n    print('saved', flush=True)\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, leave)\nprint('up', flush=True)\n"
        "while True:\n    time.sleep(0.05)\n"  # a signal just before a sleep begins is handled at its end
    )
    cluster.submit(command=["sh", "-c", f"python {tmp_path}/polite.py && echo end"])
    name = cluster.pod_in("Running")["metadata"]["name"]
    until(lambda: cluster.log() == "up\n")
    pieces = cluster.followed(name)
    cluster.store.delete(PODS, name, NAMESPACE)
    assert b"".join(pieces) == b"up\nsaved\nend\n"


@pytest.mark.slow
def test_a_process_that_ignores_sigterm_is_killed_after_its_grace_period(cluster: NodeCluster, tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo $$; while true; do sleep 0.01; done"
    cluster.submit(command=script(tmp_path, stubborn), pod={"terminationGracePeriodSeconds": 1})
    pid = pid_of(cluster)
    started = time.monotonic()
    cluster.store.delete(PODS, cluster.pods()[0]["metadata"]["name"], NAMESPACE)
    cluster.ended()
    assert time.monotonic() - started >= 1
    assert not is_alive(pid)


def test_a_deleted_job_takes_its_process_and_its_pod_along(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=script(tmp_path, ANNOUNCE_AND_SLEEP))
    pid = pid_of(cluster)
    cluster.store.delete(JOBS, "job", NAMESPACE)
    until(lambda: not cluster.pods())
    assert not is_alive(pid)


def test_a_job_deleted_in_the_foreground_is_gone_after_its_process(cluster: NodeCluster, tmp_path: Path) -> None:
    def is_gone() -> bool:
        try:
            cluster.job()
        except StatusError:
            return True
        return False

    cluster.submit(command=script(tmp_path, ANNOUNCE_AND_SLEEP))
    pid = pid_of(cluster)
    cluster.store.delete(JOBS, "job", NAMESPACE, "Foreground")
    until(is_gone)
    assert not is_alive(pid)
    assert not cluster.pods()


def test_a_stopped_node_leaves_no_process_and_changes_no_status(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=script(tmp_path, ANNOUNCE_AND_SLEEP))
    pid = pid_of(cluster)
    started = time.monotonic()
    cluster.node.stop()
    assert time.monotonic() - started < 10
    assert not is_alive(pid)
    assert cluster.pods()[0]["status"]["phase"] == "Running"
