"""Pods that wait: for a place, an image, a volume, a folder."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from emulated.node_cluster import NAMESPACE, NodeCluster, Object, conditions, node_cluster, script
from katib_emulation.errors import StatusError
from katib_emulation.objects import JOBS, PODS
from katib_emulation.pods import Mounts, quantity
from waiting import until


def asking(**resources: str) -> dict[str, Any]:
    return {"resources": {"requests": resources}}


def scheduled(cluster: NodeCluster, job: str) -> dict[str, Any]:
    """Return the PodScheduled condition of a Job's pod."""

    def condition() -> dict[str, Any] | None:
        found = [entry for pod in cluster.pods(job) for entry in pod["status"].get("conditions") or ()]
        return next((entry for entry in found if entry["type"] == "PodScheduled"), None)

    return until(condition)


def test_a_pod_waits_for_processors_until_another_ends(tmp_path: Path) -> None:
    wait = script(tmp_path, f"until test -e {tmp_path}/go; do sleep 0.01; done")
    with node_cluster(tmp_path, cpus=2) as cluster:
        cluster.submit("first", command=wait, container=asking(cpu="1500m"))
        cluster.pod_in("Running", "first")
        cluster.submit("second", container=asking(cpu="1"))
        condition = scheduled(cluster, "second")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert cluster.pods("second")[0]["status"]["phase"] == "Pending"
        assert until(lambda: cluster.events("FailedScheduling")) == [condition["message"]]
        cluster.submit("third", container=asking(cpu="500m"))
        assert "Complete" in conditions(cluster.ended("third"))
        assert not conditions(cluster.job("second"))
        (tmp_path / "go").touch()
        assert "Complete" in conditions(cluster.ended("second"))


def test_memory_is_shared_out_too(tmp_path: Path) -> None:
    with node_cluster(tmp_path, memory=2**30) as cluster:
        cluster.submit("large", container={"resources": {"limits": {"memory": "2Gi"}}})
        assert "1 Insufficient memory" in scheduled(cluster, "large")["message"]
        cluster.submit("small", container=asking(memory="1Gi"))
        assert "Complete" in conditions(cluster.ended("small"))


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("2", "2"), ("1Ki", "1024"), ("1.5Gi", "1610612736"), ("2e3", "2000"), ("3M", "3000000"), (4, "4")],
)
def test_a_quantity_is_read(text: object, number: str) -> None:
    assert quantity(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "many", "1KB", "1.2.3"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a quantity is"):
        quantity(text)


def test_a_container_that_names_no_image_does_not_run_where_images_are_listed(tmp_path: Path) -> None:
    with node_cluster(tmp_path, images=["here:1"]) as cluster:
        cluster.submit("nameless", container={"image": ""})
        assert "the emulated node has: here:1" in cluster.waiting("ErrImagePull", "nameless")["message"]


def test_a_missing_image_is_named_and_never_fails_by_itself(tmp_path: Path) -> None:
    with node_cluster(tmp_path, images=["here:1"]) as cluster:
        cluster.submit("bad", container={"image": "nope:1"})
        assert "nope:1" in cluster.waiting("ErrImagePull", "bad")["message"]
        [message] = until(lambda: cluster.events("Failed"))
        assert message.startswith('Error: Failed to pull image "nope:1"')
        assert not conditions(cluster.job("bad"))
        name = cluster.pods("bad")[0]["metadata"]["name"]
        with pytest.raises(StatusError, match=r"is waiting to start: ErrImagePull"):
            cluster.node.read_log(NAMESPACE, name)
        cluster.submit("good", container={"image": "here:1"})
        assert "Complete" in conditions(cluster.ended("good"))
        cluster.store.delete(JOBS, "bad", NAMESPACE)
        until(lambda: not cluster.pods("bad"))


def test_volumes_are_folders_and_mount_paths_name_them(cluster: NodeCluster, tmp_path: Path) -> None:
    volumes = [{"name": "run", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}]
    mounts = [{"name": "run", "mountPath": "/app/run"}, {"name": "settings", "mountPath": "/etc/app"}]
    cluster.config_map("settings", **{"rate.txt": "0.5\n"})
    cluster.submit(
        command=["sh", "-c", 'cat /etc/app/rate.txt > "$RUN/copy" && cat /app/run/copy'],
        container={"volumeMounts": mounts, "env": [{"name": "RUN", "value": "/app/run"}]},
        pod={"volumes": volumes},
    )
    cluster.ended()
    assert cluster.log() == "0.5\n"
    [pod] = cluster.pods()
    assert (tmp_path / "pods" / pod["metadata"]["uid"] / "volumes" / "run" / "copy").read_text() == "0.5\n"


def test_a_mount_path_is_replaced_where_it_is_a_path_and_nowhere_else() -> None:
    mounts = Mounts({"/data": Path("/x"), "/data/deep": Path("/y")})
    assert mounts.translate("--in=/data/a,/data:/data/deep/b") == "--in=/x/a,/x:/y/b"
    untouched = "/data2 /my/data a/data /data-set /data.txt"
    assert mounts.translate(untouched) == untouched


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        ({"configMap": {"name": "settings"}}, 'volume "v": configmap "settings" not found'),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "no volumes of kind persistentVolumeClaim"),
    ],
)
def test_a_volume_that_is_not_there_or_not_emulated_is_named(cluster: NodeCluster, volume: Object, text: str) -> None:
    cluster.submit(pod={"volumes": [{"name": "v", **volume}]})
    assert text in cluster.waiting("CreateContainerConfigError")["message"]
    assert any(text in message for message in until(lambda: cluster.events("Failed")))
    cluster.store.delete(PODS, cluster.pods()[0]["metadata"]["name"], NAMESPACE)
    assert "Failed" in conditions(cluster.ended())


def test_a_pod_that_cannot_get_its_folders_says_why(cluster: NodeCluster, tmp_path: Path) -> None:
    (tmp_path / "pods").rmdir()
    (tmp_path / "pods").write_text("no folder can be made here, as on a full disk")
    cluster.submit()
    assert "cannot make the container's folders" in cluster.waiting("CreateContainerError")["message"]
    assert any("cannot make the container's folders" in text for text in until(lambda: cluster.events("Failed")))
    cluster.store.delete(PODS, cluster.pods()[0]["metadata"]["name"], NAMESPACE)
    assert "Failed" in conditions(cluster.ended())


def test_a_folder_whose_name_a_shell_would_split_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "a b'c"
    with node_cluster(folder) as cluster:
        cluster.submit(
            command=["sh", "-c", "echo x > /app/run/file && cat /app/run/file"],
            container={"volumeMounts": [{"name": "run", "mountPath": "/app/run"}]},
            pod={"volumes": [{"name": "run", "emptyDir": {}}]},
        )
        assert "Complete" in conditions(cluster.ended())
        assert cluster.log() == "x\n"
        alias = cluster.node._folders._name
        assert alias.is_symlink()
    assert not alias.parent.exists()
