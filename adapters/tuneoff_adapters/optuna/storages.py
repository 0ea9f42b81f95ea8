"""Opening the study's storage, with a count of what is asked of it. Imports Optuna."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import optuna
from optuna.storages import BaseStorage, GrpcStorageProxy, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalFileSymlinkLock, JournalRedisBackend
from optuna.storages.journal._file import BaseJournalFileLock  # exported by no public module
from optuna.study import Study
from optuna.trial import FrozenTrial

from tuneoff_adapters.optuna.journal_lock import FlockJournalLock
from tuneoff_adapters.optuna.plan import StudyPlan

_LOCKS = {"flock": FlockJournalLock, "open": JournalFileOpenLock, "symlink": JournalFileSymlinkLock}
Stale = Callable[[Study, FrozenTrial], None]
_SQLITE_SECONDS = 60  # that a writer waits for another one; after the driver's 5 s it would fail


class Operations:
    """What was asked of a storage: SQL statements and commits, Redis commands, proxy calls, or journal reads and appends."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, *_: Any, **__: Any) -> None:
        self.count += 1

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts its calls."""

        def counting(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            return call(*arguments, **named)

        return counting


def open_storage(plan: StudyPlan, operations: Operations | None = None, stale: Stale | None = None) -> BaseStorage:
    """Open a plan's storage. `stale` is called with a trial that Optuna's heartbeat, if that is on, has found dead and failed."""
    storage, counter = plan.storage, operations or Operations()
    if storage.kind == "journal":
        return JournalStorage(_CountedFile(plan.journal, _LOCKS[storage.lock](plan.journal), counter))
    url = storage.url or f"sqlite:///{plan.database}"
    if storage.kind == "redis":
        backend = JournalRedisBackend(url, prefix=plan.study_name)
        client: Any = backend._redis
        client.execute_command = counter.counted(client.execute_command)
        return JournalStorage(backend)
    if storage.kind == "grpc":
        return _proxy(url, counter)
    return _database(url, storage.heartbeat_seconds, counter, stale)


def forget_study(plan: StudyPlan) -> None:
    """Remove the study from a server that stays; idempotent."""
    if plan.storage.kind == "redis":  # a deleted study stays in a journal as its lines
        redis = JournalRedisBackend(plan.storage.url or "")._redis
        for key in redis.scan_iter(match=f"{plan.study_name}:*"):
            redis.delete(key)
    elif plan.study_name in optuna.get_all_study_names(storage := open_storage(plan)):
        optuna.delete_study(study_name=plan.study_name, storage=storage)


def stored_bytes(plan: StudyPlan, data: Path | None) -> int | None:
    """Return how much a storage holds, or None where that is not the study's alone; `data`: the files of a managed server."""
    if plan.storage.is_shared:
        return None
    if plan.storage.kind == "redis":
        redis = JournalRedisBackend(plan.storage.url or "")._redis
        lengths = redis.pipeline(transaction=False)
        for key in redis.scan_iter(match=f"{plan.study_name}:*", count=1000):
            lengths.strlen(key)
        return sum(map(int, lengths.execute()))
    if data is not None:
        return sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    return os.path.getsize(plan.journal if plan.storage.kind == "journal" else plan.database)


def _database(url: str, heartbeat_seconds: int | None, counter: Operations, stale: Stale | None) -> BaseStorage:
    import sqlalchemy

    waiting = {"connect_args": {"timeout": _SQLITE_SECONDS}} if url.startswith("sqlite") else {}
    storage = RDBStorage(url, waiting, heartbeat_interval=heartbeat_seconds, heartbeat_stale_trial_callback=stale)
    for event in ("before_cursor_execute", "commit", "rollback"):
        sqlalchemy.event.listen(storage.engine, event, counter.add)
    return storage


def _proxy(url: str, counter: Operations) -> BaseStorage:
    place = urlsplit(url)
    port: Any = place.path if place.scheme.endswith("+unix") else place.port or 0  # joined by a colon, as in the proxy
    proxy = GrpcStorageProxy(host=place.hostname or "unix", port=port)
    for name, call in vars(proxy._stub).items():
        setattr(proxy._stub, name, counter.counted(call))
    return proxy


class _CountedFile(JournalFileBackend):
    def __init__(self, path: str, lock: BaseJournalFileLock, counter: Operations) -> None:
        super().__init__(path, lock_obj=lock)
        self._counter = counter

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        self._counter.count += 1
        return super().read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        self._counter.count += 1
        super().append_logs(logs)
