"""Where the files of a pod lie, and its logs: whole, or followed until the container has ended."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katib_emulation.node.file_watch import FileWatch
from katib_emulation.statuses import bad_request

HEARTBEAT_SECONDS = 0.5
_CHUNK = 1 << 20
_SAFE_PATH = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


@dataclass(frozen=True, slots=True)
class PodFiles:
    """The folder of one pod."""

    folder: Path

    @property
    def work(self) -> Path:
        """The working directory of the container's process."""
        return self.folder / "work"

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.folder / "logs"

    def log(self, container: str) -> Path:
        """Return the file with what a container printed, errors included."""
        return self.logs / f"{container}.log"

    def volume(self, name: str) -> Path:
        """Return the folder of a volume of the pod."""
        return self.folder / "volumes" / name

    def make(self) -> None:
        """Make the folders that every pod has."""
        self.work.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(exist_ok=True)

    def remove(self) -> None:
        """Remove everything; what cannot be removed stays."""
        shutil.rmtree(self.folder, ignore_errors=True)


class PodFolders:
    """The folders of all pods.

    Katib joins a container's command without quotes, so a path with a blank or the like would break it: then the folder goes by a
    name without such characters, a link in the folder for temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.abspath(folder)) / "pods"
        self._alias: Path | None = None
        self._folder.mkdir(parents=True, exist_ok=True)
        if not _SAFE_PATH.fullmatch(str(self._folder)):
            where = tempfile.gettempdir()
            safe = where if _SAFE_PATH.fullmatch(where) else "/tmp"
            self._alias = Path(tempfile.mkdtemp(prefix="katib-emulated-", dir=safe)) / "pods"
            self._alias.symlink_to(self._folder)

    def of(self, uid: str) -> PodFiles:
        """Return the files of the pod with this uid."""
        return PodFiles((self._alias or self._folder) / uid)

    def without(self, uids: Collection[str]) -> list[PodFiles]:
        """Return the files of the pods that are not among `uids`."""
        return [self.of(name) for name in os.listdir(self._folder) if name not in uids]

    def close(self) -> None:
        """Remove the link, if there is one."""
        if self._alias is not None:
            shutil.rmtree(self._alias.parent, ignore_errors=True)


def follow(log: Path, has_ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield what is in a log, then what is added, until `has_ended`.

    While nothing is added, empty bytes come every half second, so that the caller can see whether anybody still listens.
    """
    with FileWatch(log.parent) as watch, log.open("rb") as file:
        while True:
            watch.drain()
            is_last = has_ended()  # asked before reading: what was written before the end is read
            while chunk := file.read(_CHUNK):
                yield chunk
            if is_last:
                return
            watch.wait(HEARTBEAT_SECONDS)
            yield b""


def log_file(pod: Mapping[str, Any], container: str | None, files: PodFiles) -> Path | None:
    """Return the file of a container's log; None for a pod that has no node yet.

    Raises:
        ApiError: 400, there is no such container, none is named though there are several, or it waits to start.
    """
    name = pod["metadata"]["name"]
    names = [spec["name"] for spec in pod["spec"]["containers"]]
    if container is None and len(names) > 1:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")
    container = container or names[0]
    if container not in names:
        raise bad_request(f"container {container} is not valid for pod {name}")
    for entry in (pod.get("status") or {}).get("containerStatuses") or ():
        if entry["name"] == container and "waiting" in entry["state"]:
            why = entry["state"]["waiting"]["reason"]
            raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {why}')
    log = files.log(container)
    return log if log.exists() else None
