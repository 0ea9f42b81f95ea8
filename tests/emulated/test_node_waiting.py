"""Pods that wait: for an image, a volume; and how paths of a container become paths here."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulated.node_cluster import NAMESPACE, NodeCluster, Object, conditions, node_cluster
from katib_emulation.node import ConfigError, bytes_of, translator
from katib_emulation.objects import JOBS, PODS, StatusError
from waiting import until


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), ("1Ki", 1024), ("1.5Gi", 1610612736), ("3M", 3000000), (4, 4)],
)
def test_a_quantity_of_memory_is_read(text: object, number: int) -> None:
    assert bytes_of(text) == number


@pytest.mark.parametrize("text", ["", "many", "1KB"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a quantity of memory is"):
        bytes_of(text)


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
            cluster.node.log(NAMESPACE, name, None, False)
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
    translate = translator({"/data": Path("/x"), "/data/deep": Path("/y")})
    assert translate("--in=/data/a,/data:/data/deep/b") == "--in=/x/a,/x:/y/b"
    untouched = "/data2 /my/data a/data /data-set /data.txt"
    assert translate(untouched) == untouched


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
        alias = cluster.node._link
        assert alias is not None
        assert (alias / "pods").is_symlink()
    assert not alias.exists()
