"""The study and its storage: opened, with a count of what is asked of it; created, its best trial; forgotten. Imports Optuna."""

from __future__ import annotations

import fcntl
import inspect
import logging
import mmap
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalFileSymlinkLock, JournalRedisBackend
from optuna.storages.journal._file import BaseJournalFileLock  # exported by no public module
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from tuneoff.base.identity import trial_name
from tuneoff.errors import InfrastructureError
from tuneoff_adapters.optuna.plan import RETRY_OF, StudyPlan

if TYPE_CHECKING:
    from tuneoff.adapter import Best

Stale = Callable[[Study, FrozenTrial], None]
_ON_STALE = next(name for name in inspect.signature(RDBStorage).parameters if name.endswith("_trial_callback"))  # 4.9: new name
_SQLITE_SECONDS = 60  # that a writer waits for another one; after the driver's 5 s it would fail


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
            raise InfrastructureError(f"Optuna's journal must stay until the run's end, but {self._journal} was removed")
        self._remove_torn_line()
        return True

    def release(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._fd)

    def _remove_torn_line(self) -> None:
        end = os.fstat(self._fd).st_size
        if end and os.pread(self._fd, 1, end - 1) != b"\n":
            with mmap.mmap(self._fd, end, access=mmap.ACCESS_READ) as journal:
                whole = journal.rfind(b"\n") + 1
            os.ftruncate(self._fd, whole)


_LOCKS = {"flock": FlockJournalLock, "open": JournalFileOpenLock, "symlink": JournalFileSymlinkLock}


class Operations:
    """What was asked of a storage: SQL statements and commits, Redis commands, server calls, or journal reads and appends."""

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
        journal: Any = JournalFileBackend(plan.journal, lock_obj=_LOCKS[storage.lock](plan.journal))
        journal.read_logs, journal.append_logs = counter.counted(journal.read_logs), counter.counted(journal.append_logs)
        return JournalStorage(journal)
    url = storage.url or f"sqlite:///{plan.database}"
    if storage.kind == "redis":
        backend = JournalRedisBackend(url, prefix=plan.study_name)
        client: Any = backend._redis
        client.execute_command = counter.counted(client.execute_command)
        return JournalStorage(backend)
    if storage.kind == "mlflow":
        from tuneoff_adapters.optuna.mlflow_storage import open_study_storage

        study_storage = open_study_storage(url, plan.study_name)
        store: Any = study_storage._mlflow_client._tracking_client.store
        store._call_endpoint = counter.counted(store._call_endpoint)
        return study_storage
    if storage.kind == "grpc":
        from optuna.storages import GrpcStorageProxy  # from 4.2 on

        address = urlsplit(url)
        port: Any = address.path if address.scheme.endswith("+unix") else address.port or 0  # joined by a colon, as in the proxy
        proxy = GrpcStorageProxy(host=address.hostname or "unix", port=port)
        for name, call in vars(proxy._stub).items():
            setattr(proxy._stub, name, counter.counted(call))
        return proxy
    import sqlalchemy

    waiting = {"connect_args": {"timeout": _SQLITE_SECONDS}} if url.startswith("sqlite") else {}
    on_stale: dict[str, Any] = {_ON_STALE: stale}
    database = RDBStorage(url, waiting, heartbeat_interval=storage.heartbeat_seconds, **on_stale)
    for event in ("before_cursor_execute", "commit", "rollback"):
        sqlalchemy.event.listen(database.engine, event, counter.add)
    return database


def forget_study(plan: StudyPlan) -> None:
    """Remove the study from a server that stays; idempotent."""
    if plan.storage.kind == "redis":  # a deleted study stays in a journal as its lines
        redis = JournalRedisBackend(plan.storage.url or "")._redis
        for key in redis.scan_iter(match=f"{plan.study_name}:*"):
            redis.delete(key)
    elif plan.storage.kind == "mlflow":  # which cannot list the studies of an experiment that has trials
        from tuneoff_adapters.optuna.mlflow_storage import delete_experiment

        delete_experiment(plan.storage.url or "", plan.study_name)
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


def open_study(
    plan: StudyPlan, sampler: BaseSampler, pruner: BasePruner, operations: Operations, stale: Stale | None = None
) -> Study:
    """Open the study that the coordinator created; neither sampler nor pruner is stored in it."""
    storage = open_storage(plan, operations, stale)
    return optuna.load_study(study_name=plan.study_name, storage=storage, sampler=sampler, pruner=pruner)


def quieten() -> None:
    """Keep this process's log to what matters: no line per trial, no notice that a class may change in a later version."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("optuna.study._optimize").setLevel(logging.ERROR)  # a failed trial's traceback: core logs it already
    warnings.filterwarnings("ignore", category=ExperimentalWarning)


def create_study(plan: StudyPlan, given: Iterable[Mapping[str, float | int]] = ()) -> Study:
    """Create the study, and enqueue native values in this order."""
    direction = StudyDirection.MAXIMIZE if plan.mode == "max" else StudyDirection.MINIMIZE
    study = optuna.create_study(study_name=plan.study_name, storage=open_storage(plan), direction=direction)
    for values in given:
        study.enqueue_trial(dict(values))
    return study


def best_of(study: Study, plan: StudyPlan) -> Best | None:
    """Return the study's best trial, or None where none completed (Optuna raises ValueError then)."""
    from tuneoff.adapter import Best  # of the coordinator alone: a worker imports no adapter

    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        return None
    best = study.best_trial
    return Best(
        trial_id=trial_name(best.user_attrs.get(RETRY_OF, best.number)),
        configuration=plan.translation.decode(best.params),
        value=best.value,
    )
