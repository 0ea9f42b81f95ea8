"""Jobs that become pods and processes, and what their statuses say at the end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from emulated.node_cluster import NAMESPACE, NodeCluster, conditions, node_cluster, script, state_of
from katib_emulation.objects import JOBS, PODS
from tuneoff.base.processes import is_alive
from waiting import until


@pytest.mark.parametrize(("name", "code"), [("KILL", 137), ("TERM", 143)])
def test_a_command_that_a_signal_ends_has_its_number_and_128(cluster: NodeCluster, tmp_path: Path, name: str, code: int) -> None:
    cluster.submit(command=script(tmp_path, f"kill -{name} $$"))
    cluster.ended()
    assert state_of(cluster.pods()[0])["terminated"]["exitCode"] == code


def test_a_command_that_does_not_exist_ends_the_pod_with_a_start_error(cluster: NodeCluster) -> None:
    cluster.submit(command=["no-such-command"])
    assert "Failed" in conditions(cluster.ended())
    ending = state_of(cluster.pods()[0])["terminated"]
    assert (ending["exitCode"], ending["reason"]) == (128, "StartError")
    assert "no-such-command" in ending["message"]


def test_a_followed_log_comes_as_it_is_written_and_ends_with_the_pod(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=script(tmp_path, f"echo one; until test -e {tmp_path}/go; do sleep 0.01; done; echo two"))
    name = cluster.pod_in("Running")["metadata"]["name"]
    seen = b""
    for piece in cluster.followed(name):
        seen += piece
        if seen == b"one\n":
            (tmp_path / "go").touch()
    assert seen == b"one\ntwo\n"
    assert b"".join(cluster.followed(name)) == b"one\ntwo\n"


def test_a_follower_of_a_silent_pod_may_leave(cluster: NodeCluster) -> None:
    cluster.submit(command=["sleep", "1000"])
    pieces = cluster.followed(cluster.pod_in("Running")["metadata"]["name"])
    assert [next(pieces), next(pieces)] == [b"", b""]
    pieces.close()  # type: ignore[attr-defined]


def test_the_container_s_environment_is_the_server_s_and_its_own(
    cluster: NodeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_SERVER", "here")
    cluster_text = "import json,os,sys;print(json.dumps([os.environ.get(n) for n in sys.argv[1:]]+[os.getcwd(),sys.executable]))"
    (tmp_path / "show.py").write_text(cluster_text)
    env = [
        {"name": "ONE", "value": "1"},
        {"name": "TWO", "value": "$(ONE)2 $$(ONE) $(NONE)"},
    ]
    names = ["OF_THE_SERVER", "ONE", "TWO"]
    cluster.submit(command=["python", str(tmp_path / "show.py"), *names], container={"env": env})
    cluster.ended()
    *values, folder, executable = json.loads(cluster.log())
    [pod] = cluster.pods()
    assert values == ["here", "1", "12 $(ONE) $(NONE)"]
    assert executable == sys.executable
    assert Path(folder).is_relative_to(tmp_path / "pods" / pod["metadata"]["uid"])


def test_what_the_command_left_running_dies_with_it(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=script(tmp_path, "sleep 1000 & echo $!"))
    assert "Complete" in conditions(cluster.ended())
    until(lambda: not is_alive(int(cluster.log())))


def test_a_deleted_pod_s_folder_is_removed(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit()
    cluster.ended()
    [pod] = cluster.pods()
    folder = tmp_path / "pods" / pod["metadata"]["uid"]
    assert folder.is_dir()
    cluster.store.delete(JOBS, "job", NAMESPACE)
    until(lambda: not cluster.pods() and not folder.exists())


def test_a_pod_of_several_containers_is_refused_in_its_status(cluster: NodeCluster) -> None:
    cluster.submit(pod={"initContainers": [{"name": "first", "image": "image", "command": ["true"]}]})
    assert "first, training-container" in cluster.waiting("CreateContainerConfigError")["message"]


def test_the_pods_of_many_jobs_all_end(tmp_path: Path) -> None:
    with node_cluster(tmp_path) as cluster:
        names = [f"job-{number}" for number in range(12)]
        for name in names:
            cluster.submit(name)
        assert all("Complete" in conditions(cluster.ended(name)) for name in names)
        assert len(cluster.store.list(PODS, NAMESPACE)) == len(names)
