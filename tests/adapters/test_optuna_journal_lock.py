"""The journal's lock: it excludes others, dies with its holder, and mends a torn line."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from tuneoff.errors import InfrastructureError
from tuneoff_adapters.optuna.study import FlockJournalLock, quieten

HOLD = """import sys
from tuneoff_adapters.optuna.study import FlockJournalLock
print(FlockJournalLock(sys.argv[1]).acquire(), flush=True)
sys.stdin.read()"""


@pytest.fixture
def journal(tmp_path: Path) -> str:
    return str(tmp_path / "journal.log")


def is_free(journal: str) -> bool:
    descriptor = os.open(journal, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)  # frees it again
    return True


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


def test_a_killed_holder_frees_it_at_once(journal: str) -> None:
    command = [sys.executable, "-c", HOLD, journal]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert not is_free(journal)
        holder.kill()
    assert is_free(journal)
    assert os.listdir(Path(journal).parent) == ["journal.log"]  # no lock file to go stale


WHOLE = b'{"a": 1}\n{"b": 2}\n'


@pytest.mark.parametrize(
    ("whole", "torn"), [(WHOLE, b'{"op_code": 4, "wor'), (WHOLE, b"x" * 10_000), (WHOLE, b""), (b"", b"{" * 5000), (b"", b"")]
)
def test_a_torn_last_line_is_removed_and_nothing_else(journal: str, whole: bytes, torn: bytes) -> None:
    Path(journal).write_bytes(whole + torn)
    lock = FlockJournalLock(journal)
    lock.acquire()
    assert Path(journal).read_bytes() == whole
    lock.close()


@pytest.mark.parametrize("with_lock", [True, False])
def test_a_study_goes_on_after_a_torn_line_which_optuna_alone_does_not(journal: str, with_lock: bool) -> None:
    quieten()

    def storage() -> JournalStorage:
        return JournalStorage(JournalFileBackend(journal, lock_obj=FlockJournalLock(journal) if with_lock else None))

    study = optuna.create_study(study_name="s", storage=storage())
    study.ask()
    with open(journal, "a") as file:
        file.write('{"op_code": 6, "trial_')
    if with_lock:
        assert optuna.load_study(study_name="s", storage=storage()).ask().number == 1
        assert [trial.number for trial in study.get_trials()] == [0, 1]
        assert all(json.loads(line) for line in Path(journal).read_text().splitlines())
    else:
        with pytest.raises(Exception):  # noqa: B017  whatever Optuna raises: the appended operation is lost
            optuna.load_study(study_name="s", storage=storage()).ask()


def test_a_journal_that_was_removed_is_refused_and_the_lock_is_free(journal: str) -> None:
    lock, other = FlockJournalLock(journal), FlockJournalLock(journal)
    os.unlink(journal)
    for refused in (lock, lock, other):  # the other one is not blocked by the first
        with pytest.raises(InfrastructureError, match=r"must stay until the run's end, but .*journal\.log was removed"):
            refused.acquire()
