"""What the node runs for a pod's container: expanded command and environment, with this machine's Python and folders in them.

A process of this machine cannot have a file system of its own without rights that a user does not have: so where a text names a
path below a mount, it names the volume's folder instead. This is the emulation's largest deviation from a container.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katib_emulation.node.capacity import memory_limit
from katib_emulation.node.guardian import VARIABLE
from katib_emulation.node.pod_files import PodFiles
from katib_emulation.node.webhook import CONTAINER as COLLECTOR
from katib_emulation.node.webhook import CollectorSettings
from katib_emulation.objects import Object

ConfigMapReader = Callable[[str], Mapping[str, str] | None]
"""Returns the data of a config map of the pod's namespace, or None if there is none."""

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_LABEL = re.compile(r"metadata\.labels\['([^']+)'\]")
_PYTHONS = ("python", "python3")


class MountError(Exception):
    """A volume cannot be made now: the pod waits, and the text is its event's."""


class ConfigError(Exception):
    """The container cannot be configured: it waits with CreateContainerConfigError, and the text is its message."""


@dataclass(frozen=True, slots=True)
class PodSetup:
    """A pod whose process can be started."""

    name: str  # of the container
    command: list[str]
    environment: dict[str, str]
    folder: Path
    memory_limit: int | None  # bytes
    collector: CollectorSettings | None  # None: there is none beside it
    metrics_file: Path  # of the collector, on this machine


def container_of(pod: Mapping[str, Any]) -> Object:
    """Return the one container whose process runs: the collector beside it is a part of the emulation.

    Raises:
        ConfigError: the pod has others, or it asks for what is not emulated.
    """
    others = [container for container in pod["spec"]["containers"] if container["name"] != COLLECTOR]
    if len(others) != 1 or pod["spec"].get("initContainers"):
        names = [container["name"] for container in (*(pod["spec"].get("initContainers") or ()), *others)]
        raise ConfigError(f"the emulated node runs pods of one container without init containers, but got: {', '.join(names)}")
    container: Object = others[0]
    sub_paths = [mount["mountPath"] for mount in container.get("volumeMounts") or () if mount.get("subPath")]
    ignored = [name for name in ("envFrom", "workingDir") if container.get(name)] + [f"subPath of {path}" for path in sub_paths]
    if ignored:
        raise ConfigError(f"the emulated node has no {', '.join(ignored)}: set variables by `env`, and mount whole volumes")
    return container


def set_up(pod: Object, files: PodFiles, read_config_map: ConfigMapReader, mark: str) -> PodSetup:
    """Make the folders of a pod and return what is started in them; may be called again after it failed.

    Raises:
        ConfigError, MountError: the pod asks for what is not there, or not emulated.
        OSError: the disk is full, or the folders cannot be written.
    """
    container = container_of(pod)
    files.make()
    volumes = {
        volume["name"]: _make_volume(volume, files.volume(volume["name"]), read_config_map)
        for volume in pod["spec"].get("volumes") or ()
    }
    mounts = Mounts({mount["mountPath"]: volumes[mount["name"]] for mount in container.get("volumeMounts") or ()})
    own = _environment(pod, container)
    sidecar = next((other for other in pod["spec"]["containers"] if other["name"] == COLLECTOR), None)
    settings = None if sidecar is None else CollectorSettings.of_arguments(sidecar["args"])
    for started in pod["spec"]["containers"]:
        files.log(started["name"]).touch()
    return PodSetup(
        name=container["name"],
        command=_command(container, own, mounts),
        environment={**os.environ, **{name: mounts.translate(value) for name, value in own.items()}, VARIABLE: mark},
        folder=files.work,
        memory_limit=memory_limit(container),
        collector=settings,
        metrics_file=Path(mounts.translate(settings.path)) if settings is not None else Path(),
    )


def _make_volume(volume: Mapping[str, Any], folder: Path, read_config_map: ConfigMapReader) -> Path:
    name = volume["name"]
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    folder.mkdir(parents=True, exist_ok=True)
    if "configMap" in volume and not volume["configMap"].get("items"):
        data = read_config_map(volume["configMap"]["name"])
        if data is None:
            why = f'configmap "{volume["configMap"]["name"]}" not found'
            raise MountError(f'MountVolume.SetUp failed for volume "{name}" : {why}')
        for file, text in data.items():
            (folder / file).write_text(text)
    elif "emptyDir" not in volume:
        kinds = ", ".join(sorted(set(volume) - {"name"})) or "none"
        why = f"the emulated node has no volumes of kind {kinds}; use emptyDir, a whole configMap or hostPath"
        raise MountError(f'MountVolume.SetUp failed for volume "{name}" : {why}')
    return folder


class Mounts:
    """Which folder stands for which path of the container."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """`folders`: by absolute mount path."""
        self._folders = {path.rstrip("/"): str(folder) for path, folder in folders.items() if path.rstrip("/")}
        longest_first = sorted(self._folders, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first))
        # a whole path or the begin of one: "/data" neither in "/data2" nor in "/my/data"
        self._pattern = re.compile(rf"(?<![\w./-])(?:{names})(?![\w.-])") if names else None

    def translate(self, text: str) -> str:
        """Return the text with every mount path in it replaced by its folder."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._folders[match[0]], text)


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return the text as Kubernetes expands it: `$(NAME)` becomes the variable's value if there is one, `$$` becomes `$`."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else environment.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def _environment(pod: Object, container: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that the container's own `env` sets, not yet translated to this machine's paths."""
    found: dict[str, str] = {"HOSTNAME": pod["metadata"]["name"]}
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        label = _LABEL.fullmatch(((source or {}).get("fieldRef") or {}).get("fieldPath", ""))
        if source and label is None:
            raise ConfigError(f"the emulated node sets variables by value or from a label, but {variable['name']} from {source}")
        labels = pod["metadata"].get("labels") or {}
        found[variable["name"]] = str(labels.get(label[1], "")) if label else _expanded(str(variable.get("value") or ""), found)
    return found


def _command(container: Mapping[str, Any], environment: Mapping[str, str], mounts: Mounts) -> list[str]:
    """Return the command to start: expanded, with folders for mount paths and this Python for `python`."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        raise ConfigError(f"the emulation knows no image's entry point: give `command` of container {container['name']}")
    words = [mounts.translate(_expanded(str(word), environment)) for word in words]
    if words[0] in _PYTHONS:
        return [sys.executable, *words[1:]]
    if words[0] in ("sh", "bash") and words[1:2] == ["-c"] and len(words) > 2:
        first, blank, rest = words[2].partition(" ")
        if first in _PYTHONS:
            words[2] = f"{shlex.quote(sys.executable)}{blank}{rest}"
    return words
