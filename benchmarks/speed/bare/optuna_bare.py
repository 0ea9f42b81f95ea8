"""Optuna: spawned worker processes over one journal file with a flock lock; ask, suggest, report, tell.

`python -m benchmarks.speed.bare.optuna_bare FOLDER TRIALS SECONDS [EPOCHS]`
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal._file import BaseJournalFileLock  # exported by no public module

from benchmarks.speed.bare.objective import K_HIGH, WORKERS, X_HIGH, X_LOW, loss, print_span

STUDY = "bare"


class FlockLock(BaseJournalFileLock):
    """Optuna's own locks make waiters sleep for up to a second; the kernel's lock does not."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def acquire(self) -> bool:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_UN)


def storage(path: str) -> JournalStorage:
    return JournalStorage(JournalFileBackend(path, lock_obj=FlockLock(path)))


def work(path: str, seconds: float, epochs: int, index: int, remaining: Any, pipe: Connection) -> None:
    """Run trials until none is left; answer how many, when the first was asked and when the last ended."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.RandomSampler(seed=index)
    study = optuna.load_study(study_name=STUDY, storage=storage(path), sampler=sampler, pruner=optuna.pruners.NopPruner())
    pipe.send(None)
    pipe.recv()  # go
    count, first_ns, last_ns = 0, 0, 0
    while True:
        with remaining.get_lock():
            if remaining.value <= 0:
                break
            remaining.value -= 1
        trial = study.ask()
        first_ns = first_ns or time.monotonic_ns()
        configuration = {
            "x": trial.suggest_float("x", X_LOW, X_HIGH, log=True),
            "y": trial.suggest_float("y", 0.0, 1.0),
            "k": trial.suggest_int("k", 0, K_HIGH),
        }
        value = loss(configuration, seconds)
        for epoch in range(1, epochs + 1):
            trial.report(value, epoch)
        last_ns = time.monotonic_ns()
        study.tell(trial, value)
        count += 1
    pipe.send((count, first_ns, last_ns))


def main(folder: Path, trials: int, seconds: float, epochs: int = 1) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = str(folder / "journal.log")
    context = multiprocessing.get_context("spawn")
    remaining = context.Value("i", trials)
    optuna.create_study(study_name=STUDY, storage=storage(path))
    workers = []
    for index in range(WORKERS):
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(path, seconds, epochs, index, remaining, theirs))
        process.start()
        workers.append((process, ours))
    for _, pipe in workers:
        pipe.recv()
    for _, pipe in workers:
        pipe.send(None)
    answers = [pipe.recv() for _, pipe in workers]
    for process, _ in workers:
        process.join()
    worked = [answer for answer in answers if answer[0]]
    first_ns, last_ns = min(answer[1] for answer in worked), max(answer[2] for answer in worked)
    print_span(first_ns, last_ns, sum(answer[0] for answer in answers), trials)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), *map(int, sys.argv[4:]))
