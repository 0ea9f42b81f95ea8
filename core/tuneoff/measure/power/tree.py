"""The run's processes: what descends from its coordinator, and orphans that its supervisor adopted; PSS of the large ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tuneoff.base import clock
from tuneoff.base.processes import MARK, pss_bytes
from tuneoff.measure.power.procfs import PROC, Stat, carries, process_cpu_ns, read_stat
from tuneoff.record.samples.schema import ProcessUsage

LARGE_BYTES = 50_000_000  # of RSS; a smaller process hardly shares more than its interpreter
PSS_EVERY_NS = 5 * clock.NANOSECONDS  # of one process, at most
MOST_SHARE = 0.002  # of one core, for all processes together
SETTLED_NS = 2 * clock.NANOSECONDS  # a process so young is still importing
LITTLE_NS = 5_000_000  # of CPU time: a process that used less since it was read is not read again ...
EVERY_NS = clock.NANOSECONDS  # ... for so long, unless a child of it is gone
UNDECIDED_NS = 2 * clock.NANOSECONDS  # a child has the environment of its parent until it runs its own program


class TreeLook(NamedTuple):
    """What changed since the look before: the processes that used something or are new, those that are gone; the tree's RSS."""

    processes: tuple[ProcessUsage, ...]
    gone: tuple[tuple[int, int], ...]
    rss_bytes: int


@dataclass(slots=True)
class Member:
    """A process that is looked at."""

    pid: int
    stat: Stat
    cpu_ns: int = 0  # as fine as it is known
    read_ns: int = 0  # when it was read
    is_new: bool = True

    def usage(self, pss_bytes: int | None = None) -> ProcessUsage:
        """Return what it has used so far; its name at the first call alone."""
        stat, name = self.stat, self.stat.name if self.is_new else None
        self.is_new = False
        return ProcessUsage(
            pid=self.pid,
            started_ns=stat.started_ns,
            parent=stat.parent,
            cpu_ns=self.cpu_ns,
            children_cpu_ns=stat.children_cpu_ns,
            rss_bytes=stat.rss_bytes,
            pss_bytes=pss_bytes,
            name=name,
        )


class ProcessTree:
    """Follows the processes of one execution; what a look costs depends on their number and hardly on the host's.

    A process belongs to the tree if its parent does. A child of the supervising process, or of one above it (which adopts
    where the supervising process does not), belongs if it carries the run's mark or is in a session of the tree: so the
    guardian and other children of the supervising process do not. Once in the tree it stays, whoever adopts it.
    """

    def __init__(
        self,
        execution_id: str,
        supervisor: int | None = None,
        proc: Path = PROC,
        cpu_clock: Callable[[int], int | None] = process_cpu_ns,
    ) -> None:
        self._mark = f"{MARK}={execution_id}".encode()
        self._proc, self._cpu_clock = str(proc), cpu_clock
        supervisor = supervisor if supervisor is not None else os.getpid()
        stat = read_stat(supervisor, self._proc)
        self.supervisor = None if stat is None else Member(supervisor, stat)  # None: there is no /proc
        ancestors: dict[int, Stat | None] = {}  # the supervisor and all above it, as far as they can be read
        pid = supervisor
        while pid > 0 and pid not in ancestors:
            stat = ancestors[pid] = read_stat(pid, self._proc)
            pid = 0 if stat is None else stat.parent
        self._adopters = set(ancestors)
        self._their_sessions = {stat.session for stat in ancestors.values() if stat is not None}
        self._members: dict[int, Member] = {}
        self._sessions: set[int] = set()
        self._decided: set[str] = set()  # names in /proc
        self._is_complete = False
        self._forks: int | None = None
        self._memory = MemoryLooks(self._proc)

    def look(self, now_ns: int, forks: int | None = None) -> TreeLook:
        """Read the tree. `forks`: how many processes the host has made so far; while it stays, none is searched for."""
        changed: dict[int, ProcessUsage] = {}
        gone: list[tuple[int, int]] = []
        supervisor = [self.supervisor] if self.supervisor is not None else []
        members = {member.pid: member for member in (*supervisor, *self._members.values())}
        for member in members.values():
            if not member.is_new and now_ns - member.read_ns < EVERY_NS:
                cpu_ns = self._cpu_clock(member.pid)
                if cpu_ns is not None and 0 <= cpu_ns - member.cpu_ns < LITTLE_NS:
                    continue
            if self._read(member, now_ns, changed):
                continue
            gone.append((member.pid, member.stat.started_ns))
            self._members.pop(member.pid, None)
            self._decided.discard(str(member.pid))
            parent = members.get(member.stat.parent)
            if parent is not None and parent.pid not in changed:  # it has waited for it just now
                self._read(parent, now_ns, changed)
        if forks is None or forks != self._forks or not self._is_complete:
            self._forks = forks
            for member in self._discover(now_ns):
                self._read(member, now_ns, changed)
        looked = self._memory.look(now_ns, [(member.pid, member.stat) for member in self._members.values()])
        if looked is not None:
            changed[looked[0]] = self._members[looked[0]].usage(pss_bytes=looked[1])
        rss_bytes = sum(member.stat.rss_bytes for member in self._members.values())
        return TreeLook(tuple(changed.values()), tuple(gone), rss_bytes)

    def _read(self, member: Member, now_ns: int, changed: dict[int, ProcessUsage]) -> bool:
        """Read a process, and put it into `changed` if it has used something since; False if it is gone."""
        stat = read_stat(member.pid, self._proc)
        if stat is None or stat.started_ns != member.stat.started_ns:  # its pid may be used again
            return False
        cpu_ns = max(member.cpu_ns, self._cpu_clock(member.pid) or stat.cpu_ns)
        has_changed = (cpu_ns, stat.children_cpu_ns) != (member.cpu_ns, member.stat.children_cpu_ns)
        member.stat, member.cpu_ns, member.read_ns = stat, cpu_ns, now_ns
        if member.is_new or has_changed:
            changed[member.pid] = member.usage()
        return True

    def _discover(self, now_ns: int) -> list[Member]:
        """Return the processes that came into the tree since the last search."""
        try:
            names = set(os.listdir(self._proc))
        except OSError:
            return []
        self._decided &= names
        waiting: dict[int, Stat] = {}
        for name in names - self._decided:
            stat = read_stat(name, self._proc) if name.isdigit() else None
            if stat is not None:
                waiting[int(name)] = stat
            elif not name.isdigit():
                self._decided.add(name)
        members = []
        was_decided = True
        while was_decided and waiting:  # a process may be listed before its parent
            was_decided = False
            for pid, stat in list(waiting.items()):
                belongs = self._belongs(pid, stat, names, waiting, now_ns)
                if belongs is None:
                    continue
                was_decided = True
                del waiting[pid]
                self._decided.add(str(pid))
                if belongs:
                    members.append(self._add(pid, stat))
        self._is_complete = not waiting
        return members

    def _belongs(self, pid: int, stat: Stat, names: set[str], waiting: dict[int, Stat], now_ns: int) -> bool | None:
        """Tell whether a process is in the tree; None while that cannot be told."""
        if pid in self._adopters:
            return False
        if stat.parent in self._members:
            return True
        if stat.parent in self._adopters:
            if stat.session in self._sessions or carries(pid, self._mark, self._proc):
                return True
            return None if now_ns - stat.started_ns < UNDECIDED_NS else False
        if stat.parent in waiting or (stat.parent != 0 and str(stat.parent) not in names):
            return None  # with its parent; or the parent has just come, or has just ended and it is being adopted
        return False

    def _add(self, pid: int, stat: Stat) -> Member:
        member = self._members[pid] = Member(pid, stat)
        if stat.session not in self._their_sessions:
            self._sessions.add(stat.session)
        return member


class MemoryLooks:
    """Looks at one process at a time, at the one that waits for longest, and not before the looks so far have paid off."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._next_ns = 0
        self._looked: dict[tuple[int, int], int] = {}  # when each process was last looked at

    def look(self, now_ns: int, processes: Iterable[tuple[int, Stat]]) -> tuple[int, int] | None:
        """Return (pid, PSS in bytes) of a process that is due, or None."""
        if now_ns < self._next_ns:
            return None
        due = [
            (self._looked.get((pid, stat.started_ns), 0), pid, stat)
            for pid, stat in processes
            if stat.rss_bytes >= LARGE_BYTES and now_ns - stat.started_ns >= SETTLED_NS
        ]
        looked_ns, pid, stat = min(due, default=(now_ns, 0, None), key=lambda item: item[:2])
        if stat is None or (looked_ns and now_ns - looked_ns < PSS_EVERY_NS):
            return None
        before = time.thread_time_ns()
        pss = pss_bytes(pid, self._proc)
        cost_ns = time.thread_time_ns() - before
        self._next_ns = now_ns + int(cost_ns / MOST_SHARE)
        self._looked = {(pid, stat.started_ns): self._looked.get((pid, stat.started_ns), 0) for _, pid, stat in due}
        self._looked[pid, stat.started_ns] = now_ns
        return None if pss is None else (pid, pss)
