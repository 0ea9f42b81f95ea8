"""A folder of this user's in a place where others can make files too, such as /tmp: made anew, and removed by what is held open.

Whoever knows its name before it is made can make another folder or a link there; in a place that is not sticky (+t), also later.
So it is made only where nothing is, looked at afterwards, and from then on used through its descriptor: what comes to its name is
never entered, searched for processes, or removed. Standard library only: the guardian imports it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from tuneoff.base.processes import all_pids
from tuneoff.errors import InfrastructureError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ABOVE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC  # links may lead to the place itself: a person named it
_DELETED = " (deleted)"
_HELD = re.compile(r"/proc/[0-9]+/fd/[0-9]+")


class PrivateFolder:
    """An open folder of this user's into which nobody else can write. A context closes it; the folder stays."""

    def __init__(self, path: Path, above: int, descriptor: int) -> None:
        self.path, self._above, self._descriptor = path, above, descriptor

    @classmethod
    def make(cls, path: Path) -> Self:
        """Make a folder where nothing is, for this user alone.

        Raises:
            InfrastructureError: something is there, whosesoever.
            OSError: it cannot be made.
        """
        above = os.open(path.parent, _ABOVE)
        try:
            os.mkdir(path.name, 0o700, dir_fd=above)
            folder = cls(path, above, os.open(path.name, _FOLDER, dir_fd=above))
        except OSError as error:
            problem = _refused(path, above) if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.ELOOP) else error
            os.close(above)
            raise problem from error
        if not folder._is_private(0o077) or os.listdir(folder._descriptor):  # another one came, or no modes are kept here
            problem = _refused(path, above)
            if os.fstat(folder._descriptor).st_uid == os.geteuid():
                with contextlib.suppress(OSError):
                    os.rmdir(path.name, dir_fd=above)
            folder.close()
            raise problem
        return folder

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Open one that was made before; None: there is none, or it is a link or another user's, or others can write into it."""
        with contextlib.suppress(OSError):
            if _HELD.fullmatch(str(path)):  # a short path to a folder that a process holds open
                path = Path(os.readlink(path))
            above = os.open(path.parent, _ABOVE)
            with contextlib.suppress(OSError):
                folder = cls(path, above, os.open(path.name, _FOLDER, dir_fd=above))
                if folder._is_private(0o022):
                    return folder
                folder.close()
                return None
            os.close(above)
        return None

    def below(self, name: str) -> PrivateFolder | None:
        """Open a folder of this user's in it, whatever its mode: nobody else reaches it. None: it is not there, or a link."""
        with contextlib.suppress(OSError):
            descriptor = os.open(name, _FOLDER, dir_fd=self._descriptor)
            folder = PrivateFolder(self.path / name, os.dup(self._descriptor), descriptor)
            if os.fstat(folder._descriptor).st_uid == os.geteuid():
                return folder
            folder.close()
        return None

    @property
    def real(self) -> str:
        """Its path without links, as the kernel has it now."""
        return os.readlink(f"/proc/self/fd/{self._descriptor}").removesuffix(_DELETED)

    @property
    def is_there(self) -> bool:
        """Whether it still has its name."""
        with contextlib.suppress(OSError):
            named = os.stat(self.path.name, dir_fd=self._above, follow_symlinks=False)
            return os.path.samestat(named, os.fstat(self._descriptor))
        return False

    def is_in(self, folders: Iterable[str]) -> bool:
        """Tell whether it lies directly in one of some folders, whatever links lead there."""
        here = os.fstat(self._above)
        for folder in folders:
            with contextlib.suppress(OSError):
                if os.path.samestat(here, os.stat(folder)):
                    return True
        return False

    def writers(self) -> set[int]:
        """Return the processes into which this one may look and that have a file open for writing below it."""
        real = self.real
        pids = set()
        for pid in all_pids():
            with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to someone else
                if any(self._has(pid, name, real) for name in os.listdir(f"/proc/{pid}/fd")):
                    pids.add(pid)
        return pids

    def remove(self) -> None:
        """Remove all that is in it and itself; what cannot be removed is left. Follows no link."""
        with contextlib.suppress(OSError), os.scandir(self._descriptor) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.name, ignore_errors=True, dir_fd=self._descriptor)
                else:
                    with contextlib.suppress(OSError):
                        os.unlink(entry.name, dir_fd=self._descriptor)
        if self.is_there:
            with contextlib.suppress(OSError):
                os.rmdir(self.path.name, dir_fd=self._above)

    def close(self) -> None:
        os.close(self._descriptor)
        os.close(self._above)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_private(self, others: int) -> bool:
        status = os.fstat(self._descriptor)
        return status.st_uid == os.geteuid() and not status.st_mode & others

    def _has(self, pid: int, name: str, real: str) -> bool:
        """Tell whether a process's descriptor writes a file below this folder: by the path that the kernel has for it, which no
        link is part of, and by the file that is there. One that was removed is nowhere any more: of it the path must do."""
        with contextlib.suppress(OSError, ValueError, StopIteration):  # it ended meanwhile, or belongs to someone else
            file = f"/proc/{pid}/fd/{name}"
            target = os.readlink(file)
            if not target.startswith(f"{real}/"):
                return False
            with open(f"/proc/{pid}/fdinfo/{name}") as lines:
                flags = next(line for line in lines if line.startswith("flags:"))
            if int(flags.split()[1], 8) & os.O_ACCMODE == os.O_RDONLY:
                return False
            status = os.stat(file)
            if status.st_nlink == 0 or target.endswith(_DELETED):
                return status.st_dev == os.fstat(self._descriptor).st_dev
            within = target.removeprefix(f"{real}/")
            return os.path.samestat(status, os.stat(within, dir_fd=self._descriptor, follow_symlinks=False))
        return False


def _refused(path: Path, above: int) -> InfrastructureError:
    try:
        status = os.stat(path.name, dir_fd=above, follow_symlinks=False)
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "a folder" if stat.S_ISDIR(status.st_mode) else "a file"
        what = f"{kind} of user {status.st_uid} is there, with mode {stat.S_IMODE(status.st_mode):04o}"
    except OSError:
        what = "something was there, and is gone"
    return InfrastructureError(
        f"{path} must be made by this run alone, but {what}: it is not used; run it again, or set TMPDIR to a place that keeps "
        "owners and modes"
    )
