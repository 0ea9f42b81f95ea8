"""The steps before a container's process: is there an image, which folders are its volumes, what is the command."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katib_emulation.node.capacity import memory_limit
from katib_emulation.node.collector_settings import CONTAINER as COLLECTOR
from katib_emulation.node.collector_settings import CollectorSettings
from katib_emulation.node.container_command import ConfigError, command_of, environment_of
from katib_emulation.node.guardian import VARIABLE
from katib_emulation.node.pod_files import PodFiles
from katib_emulation.node.volumes import ConfigMapReader, Mounts, make_volume, mounts_of
from katib_emulation.objects import Object


@dataclass(frozen=True, slots=True)
class ContainerSetup:
    """Everything that is needed to start the process of a pod's container."""

    name: str
    command: list[str]
    environment: dict[str, str]
    folder: Path
    log: Path
    memory_limit: int | None  # bytes


@dataclass(frozen=True, slots=True)
class CollectorSetup:
    """What the collector beside it needs."""

    settings: CollectorSettings
    metrics_file: Path
    log: Path


@dataclass(frozen=True, slots=True)
class PodSetup:
    """A pod that is ready to be started."""

    container: ContainerSetup
    collector: CollectorSetup | None


def main_container(pod: Mapping[str, Any]) -> Object:
    """Return the one container whose process runs.

    Raises:
        ConfigError: the pod has others beside it.
    """
    others = [container for container in pod["spec"]["containers"] if container["name"] != COLLECTOR]
    if len(others) != 1 or pod["spec"].get("initContainers"):
        names = [container["name"] for container in (*(pod["spec"].get("initContainers") or ()), *others)]
        raise ConfigError(f"the emulated node runs pods of one container without init containers, but got: {', '.join(names)}")
    container: Object = others[0]
    return container


def missing_image(pod: Mapping[str, Any], images: Collection[str]) -> Mapping[str, Any] | None:
    """Return the first container whose image the node has not; without a list it has every image."""
    if not images:
        return None
    containers = [container for container in pod["spec"]["containers"] if container["name"] != COLLECTOR]
    return next((container for container in containers if container.get("image") not in images), None)


def set_up(pod: Object, files: PodFiles, read_config_map: ConfigMapReader, mark: str) -> PodSetup:
    """Make the folders of a pod and return what is started in them; may be called again after it failed.

    Raises:
        ConfigError, MountError: the pod asks for what is not there, or not emulated.
        OSError: the disk is full, or the folders cannot be written.
    """
    container = main_container(pod)
    files.make()
    volumes = {volume["name"]: make_volume(volume, files.volume(volume["name"]), read_config_map) for volume in _volumes(pod)}
    mounts = mounts_of(container, volumes)
    own = environment_of(pod, container, read_config_map)
    directory = container.get("workingDir")
    setup = ContainerSetup(
        name=container["name"],
        command=command_of(container, own, mounts),
        environment={**os.environ, **{name: mounts.translate(value) for name, value in own.items()}, VARIABLE: mark},
        folder=_working_directory(mounts, directory, files),
        log=files.log(container["name"]),
        memory_limit=memory_limit(container),
    )
    setup.log.touch()
    return PodSetup(setup, _collector(pod, volumes, files))


def _volumes(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(pod["spec"].get("volumes") or ())


def _working_directory(mounts: Mounts, wanted: str | None, files: PodFiles) -> Path:
    """Return the folder that stands for the container's working directory: one that no volume holds is the pod's own."""
    translated = mounts.translate(wanted) if wanted else wanted
    if translated is None or translated == wanted:
        return files.work
    folder = Path(translated)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _collector(pod: Mapping[str, Any], volumes: Mapping[str, Path], files: PodFiles) -> CollectorSetup | None:
    container = next((container for container in pod["spec"]["containers"] if container["name"] == COLLECTOR), None)
    if container is None:
        return None
    settings = CollectorSettings.of_arguments(container["args"])
    file = Path(mounts_of(container, volumes).translate(settings.path))
    return CollectorSetup(settings, file, files.log(COLLECTOR))
