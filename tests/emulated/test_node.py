"""Jobs that become pods and processes: what they get, how they end, and what they wait for."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from emulated.node_cluster import NAMESPACE, NodeCluster, Object, conditions, node_cluster, script, state_of
from katib_emulation.node import translator
from katib_emulation.objects import JOBS, PODS, StatusError
from tuneoff.base.processes import is_alive
from waiting import until


@pytest.mark.parametrize(("text", "code", "reason"), [("kill -KILL $$", 137, "Error"), ("", 128, "StartError")])
def test_an_end_that_is_not_the_command_s_own_has_its_code(
    cluster: NodeCluster, tmp_path: Path, text: str, code: int, reason: str
) -> None:
    cluster.submit(command=script(tmp_path, text) if text else ["no-such-command"])
    assert "Failed" in conditions(cluster.ended())
    ending = state_of(cluster.pods()[0])["terminated"]
    assert (ending["exitCode"], ending["reason"]) == (code, reason)


def test_a_followed_log_comes_as_it_is_written_and_ends_with_the_pod(cluster: NodeCluster, tmp_path: Path) -> None:
    cluster.submit(command=script(tmp_path, f"echo one; until test -e {tmp_path}/go; do sleep 0.01; done; echo two"))
    seen = b""
    for piece in cluster.followed(cluster.pod_in("Running")["metadata"]["name"]):
        seen += piece
        if seen == b"one\n":
            (tmp_path / "go").touch()
    assert seen == b"one\ntwo\n"


def test_the_container_s_environment_is_the_server_s_and_its_own(
    cluster: NodeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_SERVER", "here")
    text = "import json,os,sys;print(json.dumps([os.environ.get(n) for n in sys.argv[1:]]+[sys.executable]))"
    (tmp_path / "show.py").write_text(text)
    env = [{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "$(ONE)2 $$(ONE) $(NONE)"}]
    cluster.submit(command=["python", str(tmp_path / "show.py"), "OF_THE_SERVER", "ONE", "TWO"], container={"env": env})
    cluster.ended()
    assert json.loads(cluster.log()) == ["here", "1", "12 $(ONE) $(NONE)", sys.executable]


def test_volumes_are_folders_and_mount_paths_name_them_whatever_the_folder_is_called(tmp_path: Path) -> None:
    volumes = [{"name": "run", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}]
    mounts = [{"name": "run", "mountPath": "/app/run"}, {"name": "settings", "mountPath": "/etc/app"}]
    with node_cluster(tmp_path / "a b'c") as cluster:  # which a shell would split
        cluster.config_map("settings", **{"rate.txt": "0.5\n"})
        cluster.submit(
            command=["sh", "-c", 'cat /etc/app/rate.txt > "$RUN/copy" && cat /app/run/copy'],
            container={"volumeMounts": mounts, "env": [{"name": "RUN", "value": "/app/run"}]},
            pod={"volumes": volumes},
        )
        cluster.ended()
        assert cluster.log() == "0.5\n"
        folder = tmp_path / "a b'c" / "pods" / cluster.pods()[0]["metadata"]["uid"]
        assert (folder / "volumes" / "run" / "copy").read_text() == "0.5\n"
        cluster.store.delete(JOBS, "job", NAMESPACE)
        until(lambda: not cluster.pods() and not folder.exists())


def test_a_mount_path_is_replaced_where_it_is_a_path_and_nowhere_else() -> None:
    translate = translator({"/data": Path("/x"), "/data/deep": Path("/y")})
    assert translate("--in=/data/a,/data:/data/deep/b") == "--in=/x/a,/x:/y/b"
    untouched = "/data2 /my/data a/data /data-set /data.txt"
    assert translate(untouched) == untouched


def test_a_missing_image_is_named_and_never_fails_by_itself(tmp_path: Path) -> None:
    with node_cluster(tmp_path, images=["here:1"]) as cluster:
        cluster.submit("bad", container={"image": "nope:1"})
        assert "nope:1: not found; the emulated node has: here:1" in cluster.waiting("ErrImagePull", "bad")["message"]
        assert not conditions(cluster.job("bad"))
        with pytest.raises(StatusError, match=r"is waiting to start: ErrImagePull"):
            cluster.node.log(NAMESPACE, cluster.pods("bad")[0]["metadata"]["name"], None, False)
        cluster.store.delete(JOBS, "bad", NAMESPACE)
        until(lambda: not cluster.pods("bad"))


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        ({"volumes": [{"name": "v", "configMap": {"name": "settings"}}]}, 'volume "v": configmap "settings" not found'),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "no volumes of kind hostPath"),
        (
            {"initContainers": [{"name": "first", "command": ["true"]}]},
            "one container without init containers, but got: first, training-container",
        ),
    ],
)
def test_what_is_not_there_or_not_emulated_is_named(cluster: NodeCluster, pod: Object, text: str) -> None:
    cluster.submit(pod=pod)
    assert text in cluster.waiting("CreateContainerConfigError")["message"]
    assert any(text in message for message in until(lambda: cluster.events("Failed")))


@pytest.mark.slow
def test_a_process_that_ignores_sigterm_is_killed_after_its_grace_period(cluster: NodeCluster, tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo $$; while true; do sleep 0.01; done"
    cluster.submit(command=script(tmp_path, stubborn), pod={"terminationGracePeriodSeconds": 1})
    cluster.pod_in("Running")
    pid = int(until(lambda: cluster.log().strip()))
    started = time.monotonic()
    cluster.store.delete(PODS, cluster.pods()[0]["metadata"]["name"], NAMESPACE)
    assert conditions(cluster.ended())["Failed"] == "BackoffLimitExceeded"
    assert time.monotonic() - started >= 1
    assert not is_alive(pid)
