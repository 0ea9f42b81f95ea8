"""The journal's lock: it excludes other processes, dies with its holder, and mends a torn line."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from tuneoff.errors import InfrastructureError
from tuneoff_adapters.optuna.study import FlockJournalLock, quieten

SPAWN = multiprocessing.get_context("spawn")


def hold(journal: str, pipe: Connection) -> None:
    """Take the lock, say so, and free it when told to."""
    lock = FlockJournalLock(journal)
    lock.acquire()
    pipe.send("held")
    pipe.recv()
    lock.release()
    pipe.send("freed")
    pipe.recv()


@pytest.fixture
def journal(tmp_path: Path) -> str:
    return str(tmp_path / "journal.log")


@pytest.fixture
def holder(journal: str) -> Iterator[tuple[BaseProcess, Connection]]:
    """A process that holds the lock, and the pipe to it."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=hold, args=(journal, theirs))
    process.start()
    assert ours.poll(60)
    assert ours.recv() == "held"
    yield process, ours
    process.kill()
    process.join(60)


def is_free(journal: str) -> bool:
    descriptor = os.open(journal, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)  # frees it again
    return True


def test_while_one_process_holds_it_no_other_gets_it(journal: str, holder: tuple[BaseProcess, Connection]) -> None:
    _, pipe = holder
    assert not is_free(journal)
    pipe.send("free it")
    assert pipe.recv() == "freed"
    assert is_free(journal)


def test_two_locks_of_one_process_exclude_each_other(journal: str) -> None:
    first, second = FlockJournalLock(journal), FlockJournalLock(journal)
    first.acquire()
    waiter = threading.Thread(target=second.acquire)
    waiter.start()
    waiter.join(0.05)
    assert waiter.is_alive()
    first.release()
    waiter.join(10)
    assert not waiter.is_alive()
    second.close()


def test_a_killed_holder_frees_it_at_once(journal: str, holder: tuple[BaseProcess, Connection]) -> None:
    process, _ = holder
    process.kill()
    process.join(60)
    assert is_free(journal)
    assert os.listdir(Path(journal).parent) == ["journal.log"]  # no lock file to go stale


WHOLE = b'{"a": 1}\n{"b": 2}\n'


@pytest.mark.parametrize(
    ("whole", "torn"), [(WHOLE, b'{"op_code": 4, "wor'), (WHOLE, b"x" * 10_000), (WHOLE, b""), (b"", b"{" * 5000)]
)
def test_a_torn_last_line_is_removed_and_nothing_else(tmp_path: Path, whole: bytes, torn: bytes) -> None:
    journal = tmp_path / "journal.log"
    journal.write_bytes(whole + torn)
    lock = FlockJournalLock(str(journal))
    lock.acquire()
    assert journal.read_bytes() == whole
    lock.release()
    lock.close()
    assert journal.read_bytes() == whole


def test_a_study_goes_on_after_a_torn_line_which_optuna_alone_does_not(tmp_path: Path) -> None:
    quieten()
    for with_lock in (True, False):
        journal = str(tmp_path / f"journal-{with_lock}.log")
        lock = FlockJournalLock(journal) if with_lock else None
        study = optuna.create_study(study_name="s", storage=JournalStorage(JournalFileBackend(journal, lock_obj=lock)))
        study.ask()
        with open(journal, "a") as file:
            file.write('{"op_code": 6, "trial_')
        other = JournalStorage(JournalFileBackend(journal, lock_obj=FlockJournalLock(journal) if with_lock else None))
        if with_lock:
            reopened = optuna.load_study(study_name="s", storage=other)
            assert reopened.ask().number == 1
            assert [trial.number for trial in study.get_trials()] == [0, 1]
            assert all(json.loads(line) for line in Path(journal).read_text().splitlines())
        else:
            with pytest.raises(Exception):  # noqa: B017  whatever Optuna raises: the appended operation is lost
                optuna.load_study(study_name="s", storage=other).ask()


def test_a_journal_that_was_removed_is_refused_and_the_lock_is_free(journal: str) -> None:
    lock = FlockJournalLock(journal)
    other = FlockJournalLock(journal)
    os.unlink(journal)
    for _ in range(2):
        with pytest.raises(InfrastructureError, match=r"must stay until the run's end, but .*journal\.log was removed"):
            lock.acquire()
    with pytest.raises(InfrastructureError):
        other.acquire()  # not blocked by the first one
