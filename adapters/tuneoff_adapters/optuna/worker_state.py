"""What a worker is doing, written so that the coordinator can read it after the worker was killed (about 3 µs each)."""

from __future__ import annotations

import contextlib
import enum
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from tuneoff.run.trial.trial_process import Locked


class WorkerStage(enum.IntEnum):
    """Where a worker is between two asks."""

    IDLE = 0
    ASKING = 1
    SUBMITTING = 2  # the trial is counted; its event may be written or not
    RUNNING = 3
    COMPLETED = 4  # the trial ended so, and Optuna is being told
    PRUNED = 5
    FAILED = 6


@dataclass(slots=True, kw_only=True)
class WorkerState:
    """The stage, and the trial that it concerns: Optuna's number, tuneoff's own (another one for a retry), the attempt.

    `submitted` counts the first attempts that the workers of this place have begun, dead ones included.
    """

    stage: WorkerStage = WorkerStage.IDLE
    number: int = 0
    trial: int = 0
    attempt: int = 1
    submitted: int = 0
    value: float = 0.0  # of a completed trial
    operations: int = 0  # asked of the storage by the workers of this place, and their CPU time for it
    cpu_ns: int = 0


def death_file(folder: str, number: int) -> Path:
    """Return the file of when (monotonic ns) the worker of Optuna's trial of this number died."""
    return Path(folder, f"died-{number}")


def died_at(folder: str, number: int) -> int | None:
    """Return when the worker of a trial died, in monotonic ns, or None where it did not."""
    with contextlib.suppress(FileNotFoundError):
        return int(death_file(folder, number).read_text())
    return None


class WorkerStateFile:
    """One worker's state: a record of fixed size, overwritten in place."""

    _RECORD = struct.Struct("<qqqqqdqq")

    def __init__(self, path: Path | str, is_on_hosts: bool = False) -> None:
        """`is_on_hosts`: the other side is on another host; a lock makes a network's file system show what was written."""
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._locked = Locked(self._fd) if is_on_hosts else contextlib.nullcontext()

    def write(self, state: WorkerState) -> None:
        counts = (state.stage, state.number, state.trial, state.attempt, state.submitted)
        with self._locked:
            os.pwrite(self._fd, self._RECORD.pack(*counts, state.value, state.operations, state.cpu_ns), 0)

    def read(self) -> WorkerState:
        with self._locked:
            content = os.pread(self._fd, self._RECORD.size, 0)
        if len(content) < self._RECORD.size:
            return WorkerState()  # the worker has not begun
        state = WorkerState(**dict(zip(WorkerState.__slots__, self._RECORD.unpack(content), strict=True)))
        state.stage = WorkerStage(state.stage)
        return state

    def close(self) -> None:
        os.close(self._fd)
