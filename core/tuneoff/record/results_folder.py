"""The results folder of a matrix: who may write to it, and which plan it holds.

Its list of the executions that were begun is what tells that one was removed whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from tuneoff.base.files import append_line, kind_of, open_regular, open_to_change, read_json, read_regular
from tuneoff.base.layout import BEGUN, FILES, FOLDERS, FOLDERS_OF_EXECUTION, LOCK, PLAN, RUNS
from tuneoff.base.processes import CLEANING_SECONDS, GUARDIAN, command_line, is_alive, openers
from tuneoff.errors import ResultsError
from tuneoff.experiment import analysis
from tuneoff.experiment.plan import Plan
from tuneoff.record.endings import KILLED, UNWRITABLE, Ruling
from tuneoff.record.store import write_bytes

_UNWRITABLE = "e"  # in the lock, before an errno: not more bytes than a pid has
SUFFIXES = (".json", ".jsonl", ".txt")  # of the files of an execution
_LINE = re.compile(rb"([0-9a-zA-Z][0-9a-zA-Z._-]*)/([0-9a-zA-Z][0-9a-zA-Z._-]*)\n")


class ResultsFolder:
    """A results folder held by this process: a second command on it is refused while the lock is held.

    One that it made is removed where an error ends the block before a run has begun: nothing is in it to go on from.
    """

    def __init__(self, path: Path, plan: Plan, *, resume: bool) -> None:
        """Make or open the folder for `plan`.

        Raises:
            ResultsError: it cannot be written, is in use, holds another plan, or holds results and `resume` is False.
        """
        self.path = path
        self._is_new = not os.path.lexists(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            self.lock = open_to_change(path / LOCK, os.O_RDWR, shared=True)
            self._take_lock()
            with contextlib.ExitStack() as opened:
                opened.callback(self.close)
                self._check(plan, resume)
                os.ftruncate(self.lock, 0)
                os.pwrite(self.lock, f"{os.getpid()}\n".encode(), 0)
                opened.pop_all()  # it stays open
        except OSError as error:
            raise ResultsError(f"{path} cannot be written: {error.strerror}; choose another --output") from error

    def _take_lock(self) -> None:
        """Take the lock; if its command is dead, its guardian is cleaning up: wait for that.

        That of a copy by hard links is the original's until it can be taken: then it becomes a file of its own.
        """
        deadline = time.monotonic() + CLEANING_SECONDS
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(self.lock, 20, 0).decode(errors="replace").strip()
                is_dead = holder.isdigit() and not is_alive(int(holder))
                if is_dead and time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
                path = os.path.realpath(self.path / LOCK)
                guardians = [pid for pid in openers(path) if pid != os.getpid() and GUARDIAN in command_line(pid, None)]
                os.close(self.lock)
                if is_dead and guardians:
                    whose = f"the guardian (pid {guardians[0]}) of a tuneoff command that is dead (pid {holder})"
                    problem = f"{self.path} is held by {whose}, which still removes what that left"
                    raise ResultsError(f"{problem}; wait for its end, and try again") from error
                problem = f"{self.path} is in use by another tuneoff command (pid {holder if holder.isdigit() else 'unknown'})"
                raise ResultsError(f"{problem}; wait for it, or choose another --output") from error
            taken = os.fstat(self.lock)
            is_there = os.path.samestat(taken, os.lstat(self.path / LOCK))  # else another command made it a file of its own
            if is_there and taken.st_nlink == 1:
                break
            earlier = self.lock
            self.lock = open_to_change(self.path / LOCK, os.O_RDWR, shared=not is_there)
            os.close(earlier)
        self.earlier_end = end_of(os.pread(self.lock, 100, 0))

    def _check(self, plan: Plan, resume: bool) -> None:
        if (self.path / PLAN).exists():
            earlier = read_plan(self.path)
            is_same = earlier.plan_id == plan.plan_id
            if not is_same and not (resume and earlier.begins(plan)):
                raise ResultsError(f"{self.path} holds the runs of another plan ({earlier.name}); choose another --output")
            other = analysis.difference(earlier.analysis, plan.analysis)
            if other is not None:
                problem = f"was begun with another `{other}`, which is frozen since"
                raise ResultsError(f"{self.path} {problem}; undo that change, or choose another --output")
            if not resume:
                raise ResultsError(f"{self.path} already holds results of this plan; add --resume, or choose another --output")
            if not is_same:  # seeds are added
                self._write(plan)
        elif os.path.lexists(self.path / RUNS):  # of what plan? other files in the folder are not tuneoff's, and stay
            raise ResultsError(f"{self.path} holds {RUNS} and no {PLAN}; choose another --output")
        else:
            self._write(plan)

    def _write(self, plan: Plan) -> None:
        write_bytes(self.path / PLAN, (json.dumps(plan.to_json(), indent=1) + "\n").encode())

    def finish(self) -> None:
        """Note that the command came to its end: nothing of the plan was left out by a kill or an interruption."""
        os.ftruncate(self.lock, 0)

    def note_unwritable(self, number: int) -> None:
        """Note in place of the pid, where a full disk has room for it, that the folder could not be written; `number`: errno."""
        with contextlib.suppress(OSError):
            os.ftruncate(self.lock, os.pwrite(self.lock, f"{_UNWRITABLE}{number}\n".encode(), 0))

    def close(self) -> None:
        os.close(self.lock)

    def __enter__(self) -> ResultsFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(OSError):
            is_unwritable = kind is not None and issubclass(kind, ResultsError)  # which `--resume` goes on from
            if kind is not None and not is_unwritable and self._is_new and {*os.listdir(self.path)} <= {PLAN, LOCK}:
                shutil.rmtree(self.path)
        self.close()


def end_of(lock: bytes) -> Ruling:
    """Return how the last command in a folder ended runs that it left without a record."""
    for number, ruling in UNWRITABLE.items():
        if lock.strip() == f"{_UNWRITABLE}{number}".encode():
            return ruling
    return KILLED


def came_to_end(path: Path) -> bool | None:
    """Tell whether the last command in a results folder ended by itself; False: killed, interrupted or at work, None: unknown."""
    try:
        return not read_regular(path / LOCK, 1000).strip()
    except OSError:
        return None


@contextlib.contextmanager
def reading(path: Path) -> Iterator[bool]:
    """Keep commands off the folder while it is read, beside other readers; False: a command works in it now.

    One without its lock (it was copied), or on a file system without locks, is not a command's.
    """
    is_free = True
    with contextlib.ExitStack() as opened:
        try:
            lock = opened.enter_context(open_regular(path / LOCK))
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            is_free = False
        except OSError:  # see above
            pass
        yield is_free


def read_plan(path: Path) -> Plan:
    """Read the plan of a results folder in which nothing stands in the place of something else.

    Raises:
        ResultsError: there is none, it has another format version, or see `check_kinds`.
    """
    try:
        data = read_json(path / PLAN)
    except OSError as error:
        problem = f"{path} is not a results folder: {PLAN} cannot be read ({error.strerror})"
        raise ResultsError(f"{problem}; give a results folder, e.g. one under results/") from error
    except ValueError as error:
        raise ResultsError(f"{path / PLAN} is damaged: {error}; begin a new folder") from error
    check_kinds(path)
    return Plan.from_json(data)


def check_kinds(path: Path) -> None:
    """Check that folders and files, down to the entries of each execution, are these and not links, pipes or each other.

    Raises:
        ResultsError: one is not, or a folder cannot be read.
    """
    try:
        for entry in _entries(path):
            if entry.name in (*FOLDERS, *FILES):
                _check_kind(entry, must_be_folder=entry.name in FOLDERS)
        executions = [folder for run in _folders(path / RUNS) for folder in _folders(run)] if os.path.lexists(path / RUNS) else []
        for execution in executions:
            for entry in _entries(execution):
                is_folder = entry.name in FOLDERS_OF_EXECUTION
                if is_folder or entry.name.endswith(SUFFIXES) or not entry.is_dir(follow_symlinks=False):
                    _check_kind(entry, must_be_folder=is_folder)
    except OSError as error:
        raise ResultsError(f"{error.filename} cannot be read: {error.strerror}; give a whole results folder") from error


def _folders(path: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    """Return the entries of a folder that holds folders alone."""
    entries = _entries(path)
    for entry in entries:
        _check_kind(entry, must_be_folder=True)
    return entries


def _entries(path: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, none where it was removed meanwhile."""
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if not entry.name.endswith(".tmp")]  # what a crash left of a file
    except FileNotFoundError:
        return []


def _check_kind(entry: os.DirEntry[str], *, must_be_folder: bool) -> None:
    is_right = entry.is_dir(follow_symlinks=False) if must_be_folder else entry.is_file(follow_symlinks=False)
    if not is_right:
        kind = kind_of(Path(entry.path))
        if kind is not None:  # else it was removed meanwhile
            must = "folder" if must_be_folder else "file"
            raise ResultsError(f"{entry.path} must be a {must}, but is {kind}; put the {must} itself there")


def note_begun(results: Path, run_id: str, execution_id: str) -> None:
    """Add an execution, whose folder is there by now, to the list.

    Raises:
        ResultsError: the list cannot be written.
    """
    path = results / BEGUN
    try:
        descriptor = open_to_change(path, os.O_WRONLY | os.O_APPEND)
        try:
            append_line(descriptor, f"{run_id}/{execution_id}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ResultsError(f"{path} cannot be written: {error.strerror}; free space or choose another --output") from error


def begun(results: Path) -> list[tuple[str, str]]:
    """Return (run id, execution id) of each execution of the list, in its order; none where there is no list.

    Raises:
        OSError: it cannot be read.
    """
    try:
        content = read_regular(results / BEGUN)
    except FileNotFoundError:
        return []
    matches = (_LINE.fullmatch(line) for line in content.splitlines(keepends=True))  # a kill may have cut the last one
    return [(line[1].decode(), line[2].decode()) for line in matches if line is not None]
