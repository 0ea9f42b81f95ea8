"""The lock of Optuna's journal file, by `flock`: the kernel frees it when its holder dies, and nobody sleeps for it.

Optuna's own locks are files that outlive a killed holder (30 s until they count as stale), and waiters back off up to 1 s.
"""

from __future__ import annotations

import fcntl
import os

from optuna.storages.journal._file import BaseJournalFileLock  # exported by no public module

from tuneoff.errors import InfrastructureError

_CHUNK_BYTES = 4096


def removed(journal: str) -> InfrastructureError:
    """Return the error of a journal that is no longer there."""
    return InfrastructureError(f"Optuna's journal must stay until the run's end, but {journal} was removed")


class FlockJournalLock(BaseJournalFileLock):
    """An exclusive lock on the journal file itself. Not for network file systems.

    A holder that is killed in the middle of a line leaves it torn, and what is appended to it makes the journal
    unreadable; so whoever takes the lock removes a torn line first. A journal that was removed is found too: Optuna would
    begin another one, and read it from where the first one ended.
    """

    def __init__(self, journal: str) -> None:
        self._journal = journal
        self._fd = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def acquire(self) -> bool:
        """Take the lock.

        Raises:
            InfrastructureError: the journal was removed.
        """
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        if os.fstat(self._fd).st_nlink == 0:
            self.release()
            raise removed(self._journal)
        self._remove_torn_line()
        return True

    def release(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._fd)

    def _remove_torn_line(self) -> None:
        end = os.fstat(self._fd).st_size
        if end == 0 or os.pread(self._fd, 1, end - 1) == b"\n":
            return
        while end > 0:
            start = max(0, end - _CHUNK_BYTES)
            newline = os.pread(self._fd, end - start, start).rfind(b"\n")
            if newline >= 0:
                os.ftruncate(self._fd, start + newline + 1)
                return
            end = start
        os.ftruncate(self._fd, 0)
