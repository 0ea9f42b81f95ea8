"""Where the files of a pod lie: logs by container, folders of volumes, and a folder to work in."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

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
        """Make the folders that every pod has.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
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
        if not _SAFE_PATH.fullmatch(str(self._folder)):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._alias = Path(_temporary_folder()) / "pods"
            self._alias.symlink_to(self._folder)

    def of(self, uid: str) -> PodFiles:
        """Return the files of the pod with this uid."""
        return PodFiles((self._alias or self._folder) / uid)

    def without(self, uids: Collection[str]) -> list[PodFiles]:
        """Return the files of the pods that are not among `uids`."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []  # no pod has run yet
        return [self.of(name) for name in names if name not in uids]

    def close(self) -> None:
        """Remove the link, if there is one."""
        if self._alias is not None:
            shutil.rmtree(self._alias.parent, ignore_errors=True)


def _temporary_folder() -> str:
    where = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="katib-emulated-", dir=where if _SAFE_PATH.fullmatch(where) else "/tmp")
