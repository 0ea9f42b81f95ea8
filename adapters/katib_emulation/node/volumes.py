"""A pod's volumes as folders, and the replacement of mount paths in what its container is given.

A process of this machine cannot have a file system of its own without rights that a user does not have: so where a text names a
path below a mount, it names the volume's folder instead. This is the emulation's largest deviation from a container.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ConfigMapReader = Callable[[str], Mapping[str, str] | None]
"""Returns the data of a config map of the pod's namespace, or None if there is none."""


class MountError(Exception):
    """A volume cannot be made now: the pod waits, and the text is its event's."""


def make_volume(volume: Mapping[str, Any], folder: Path, read_config_map: ConfigMapReader) -> Path:
    """Make the folder of one volume and return it.

    Raises:
        MountError: what it shall show does not exist, or its kind is not emulated.
        OSError: the disk is full, or the folder cannot be written.
    """
    name = volume["name"]
    if "hostPath" in volume:
        return Path(volume["hostPath"]["path"])
    folder.mkdir(parents=True, exist_ok=True)
    if "configMap" in volume:
        source = volume["configMap"]
        data = read_config_map(source.get("name", ""))
        if data is None and not source.get("optional"):
            raise MountError(f'MountVolume.SetUp failed for volume "{name}" : configmap "{source.get("name")}" not found')
        for file, text in _selected(name, source, data or {}).items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    elif "emptyDir" not in volume:
        kinds = ", ".join(sorted(set(volume) - {"name"})) or "none"
        way_out = "use emptyDir, configMap or hostPath"
        raise MountError(
            f'MountVolume.SetUp failed for volume "{name}" : the emulated node has no volumes of kind {kinds}; {way_out}'
        )
    return folder


def _selected(volume: str, source: Mapping[str, Any], data: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a config map's volume: all keys, or the listed ones under their paths."""
    if not source.get("items"):
        return dict(data)
    files: dict[str, str] = {}
    for item in source["items"]:
        if item["key"] in data:
            files[item["path"]] = data[item["key"]]
        elif not source.get("optional"):
            missing = f"configmap references non-existent config key: {item['key']}"
            raise MountError(f'MountVolume.SetUp failed for volume "{volume}" : {missing}')
    if any(path.startswith("/") or ".." in path.split("/") for path in files):
        raise MountError(f'MountVolume.SetUp failed for volume "{volume}" : invalid path in items')
    return files


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


def mounts_of(container: Mapping[str, Any], volumes: Mapping[str, Path]) -> Mounts:
    """Return the mounts of a container; makes the folders of `subPath`.

    Raises:
        MountError: a mount names no volume of the pod.
        OSError: a folder cannot be made.
    """
    folders: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or ():
        if mount["name"] not in volumes:
            raise MountError(f'volume "{mount["name"]}" of container {container["name"]} is not among the pod\'s volumes')
        folder = volumes[mount["name"]]
        if mount.get("subPath"):
            if ".." in mount["subPath"].split("/") or mount["subPath"].startswith("/"):
                raise MountError(f"subPath {mount['subPath']!r} must stay inside its volume")
            folder = folder / mount["subPath"]
            if not folder.exists():
                folder.mkdir(parents=True)
        folders[mount["mountPath"]] = folder
    return Mounts(folders)
