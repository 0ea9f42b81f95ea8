"""Why a trial's process died: notes that the supervisor leaves before it kills, and what may be tried again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tuneoff.base.layout import KILLS
from tuneoff.base.processes import is_own_end
from tuneoff.experiment.trial_context import TrialContext

if TYPE_CHECKING:
    from tuneoff.record.events.writer import EventWriter

MEMORY = f"{KILLS}/memory"  # what is watched on other hosts
_OVER = "over_"


def note_kill(run_dir: Path | str, trial_id: str, attempt: int, cause: str) -> None:
    """Leave a note before a trial's process is killed, so that whoever sees the death knows why."""
    _write(Path(run_dir) / KILLS / f"{trial_id}.{attempt}", cause)


def announce_kill(run_dir: Path | str, events: EventWriter, trial_id: str, attempt: int, cause: str | None, **why: Any) -> None:
    """Say that an attempt ends for a limit, or by its own code, so that it is not tried again.

    `why`: `charged` and `limit` of the event.
    """
    note_kill(run_dir, trial_id, attempt, cause or "")
    events.write("trial_killed", trial=trial_id, attempt=attempt, cause=cause, **why)


def kill_cause(run_dir: Path | str, trial_id: str, attempt: int) -> str | None:
    """Return why the supervisor killed this attempt, or None if it did not."""
    return _text(Path(run_dir) / KILLS / f"{trial_id}.{attempt}")


class KillRequest(NamedTuple):
    """An attempt that is to be killed: the process (pid, its start in nanoseconds) that was at it; `path`: of the request."""

    path: Path
    pid: int
    started_ns: int
    attempt: tuple[str, int]


def ask_kill(run_dir: Path | str, boot_id: str, pid: int, started_ns: int, attempt: tuple[str, int]) -> None:
    """Ask whoever looks after another host of the run, by its boot id, to kill a process there, if it is still at the attempt."""
    _write(Path(run_dir) / KILLS / f"{boot_id}_{pid}_{started_ns}", f"{attempt[0]} {attempt[1]}")


def asked_kills(run_dir: Path | str, boot_id: str) -> list[KillRequest]:
    """Return what is to be killed on a host."""
    requests = []
    for path, pid, started_ns, text in _requests(Path(run_dir) / KILLS, boot_id):
        trial, _, number = text.partition(" ")
        requests.append(KillRequest(path, pid, started_ns, (trial, int(number))))
    return requests


def has_more_memory_there(
    run_dir: Path | str, boot_id: str, pid: int, started_ns: int, limit_bytes: int, attempt: tuple[str, int]
) -> bool:
    """Tell whether a process on another host has more memory, as whoever looks after that host said of this attempt there."""
    folder, name, request = Path(run_dir) / MEMORY, f"{boot_id}_{pid}_{started_ns}", f"{limit_bytes} {attempt[0]} {attempt[1]}"
    if _text(folder / name) != request:
        folder.parent.mkdir(exist_ok=True)
        _write(folder / name, request)
    return _text(folder / f"{_OVER}{name}") == request


def watched_memory(run_dir: Path | str, boot_id: str) -> list[WatchedMemory]:
    """Return what is to be watched on a host."""
    return [
        WatchedMemory(pid, started_ns, int(request.partition(" ")[0]), request, path.with_name(f"{_OVER}{path.name}"))
        for path, pid, started_ns, request in _requests(Path(run_dir) / MEMORY, boot_id)
    ]


class WatchedMemory(NamedTuple):
    """A process (pid, its start in nanoseconds) and its limit; `request` is written to `over` while it has more than that."""

    pid: int
    started_ns: int
    limit_bytes: int
    request: str
    over: Path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # two attempts may overlap on a slot
    temporary.write_text(text)
    os.replace(temporary, path)


def _requests(folder: Path, boot_id: str) -> Iterator[tuple[Path, int, int, str]]:
    """Yield what is asked for on a host: the file, the process (pid, its start in nanoseconds), and the text."""
    for path in folder.glob(f"{boot_id}_*_*"):
        pid, started_ns = map(int, path.name.split("_")[1:])
        if text := _text(path):
            yield path, pid, started_ns, text


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:  # it is not there, or its file system is away
        return None


def out_of_memory_cause(memory_bytes: int | None, by: str) -> str:
    """Return the cause of a trial that exceeded its memory; `by`: what enforced the limit."""
    return f"out of memory: more than {(memory_bytes or 0) / 1e6:g} MB ({by})"


def out_of_memory_kills(cgroup: Path | str) -> int:
    """Return how many processes the kernel has killed in a memory control group (v1 or v2); 0 where it cannot be read."""
    for name in ("memory.oom_control", "memory.events"):
        try:
            lines = (Path(cgroup) / name).read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value)
    return 0


class KernelKills:
    """Tells whether the kernel has killed in a memory control group, None for no group, since this was made."""

    def __init__(self, cgroup: str | None) -> None:
        self._cgroup = cgroup
        self._before = out_of_memory_kills(cgroup) if cgroup is not None else 0

    def are_new(self) -> bool:
        return self._cgroup is not None and out_of_memory_kills(self._cgroup) > self._before

    def claim(self, run_dir: Path | str, slot: int) -> None:
        """Leave a note that the kills so far were of a trial that ended by itself: no death on the slot is theirs."""
        if self._cgroup is not None:
            _write(Path(run_dir) / KILLS / f"slot-{slot}", str(out_of_memory_kills(self._cgroup)))


class Retries:
    """Decides for one run which dead attempts are tried again; knows how many kills for memory each slot has had so far."""

    def __init__(self, context: TrialContext, limit: int) -> None:
        self._run_dir, self._cgroups, self._limit = context.run_dir, context.memory_cgroups, limit
        self._seen = [0] * len(self._cgroups)

    def may_retry(self, trial_id: str, attempt: int, exit_code: int | None, slot: int | None) -> bool:
        """Tell whether a dead attempt was a fault of the infrastructure and `limit` retries allow another one.

        A fault of the infrastructure is an end by a signal (`exit_code` None: unknown) that neither the supervisor (limits), the
        trial's own code nor the kernel's memory control sent. `slot` None: not known, so a kill for memory in any slot counts.
        Ask once for each death, also where no retry is left: else a kill is held against the slot's next trial.
        """
        is_unexplained = not is_own_end(exit_code) and kill_cause(self._run_dir, trial_id, attempt) is None
        if slot is not None:
            was_out_of_memory = self._has_new_kills(slot)
        else:  # `any` ends at the first such slot: its kills are one trial's, however many processes; the others are not seen
            was_out_of_memory = is_unexplained and any(map(self._has_new_kills, range(len(self._cgroups))))
        return is_unexplained and not was_out_of_memory and attempt <= self._limit

    def _has_new_kills(self, slot: int) -> bool:
        if slot >= len(self._cgroups):
            return False
        before = self._seen[slot]
        before = max(before, int(_text(Path(self._run_dir) / KILLS / f"slot-{slot}") or 0))  # 0: nobody claimed any
        self._seen[slot] = out_of_memory_kills(self._cgroups[slot])
        return self._seen[slot] > before
