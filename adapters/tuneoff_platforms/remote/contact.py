"""The coordinator's contact with the hosts of a run: checks before the start, clocks and signs of life, cleaning at the end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base import clock
from tuneoff.base.files import replacing
from tuneoff.base.layout import CLOCKS
from tuneoff.errors import InfrastructureError, UserError
from tuneoff.record.events.reader import read_header
from tuneoff.record.run_context import RunContext
from tuneoff.workload import workload_at
from tuneoff_platforms.remote.agent import Agent
from tuneoff_platforms.remote.host import AgentNode, after, answers, sent, until
from tuneoff_platforms.remote.options import BEAT_SECONDS, LOST

CHECK_SECONDS = 60.0  # for a host's answer before anything is started: its Python may have to come from a slow disk
CLEAN_SECONDS = 15.0

_TRIES = 5  # readings of a host's clock, of which the narrowest counts
_Reading = tuple[int, int, str, int]  # width, offset, boot id, offset of its own wall clock; the narrowest counts


@dataclass(slots=True)
class _ContactedHost:
    """One host. `is_late`: trials may have begun there before its clock was read, dated by its own wall clock."""

    node: AgentNode
    heard_ns: int
    is_late: bool = False
    is_lost: bool = False


_HostClock = tuple[_ContactedHost, list[_Reading]]


@dataclass(slots=True)
class Contact:
    """All hosts of a run."""

    context: RunContext
    folder: str | None  # of temporary files on each host
    lost_seconds: float
    makes_folder: bool = True  # else it was made before
    lost: Callable[[AgentNode], None] = lambda node: None  # called with a host that is lost, in any thread
    _hosts: list[_ContactedHost] = field(default_factory=list)
    _stated: dict[str, tuple[int, int]] = field(default_factory=dict)  # by boot id: a clock's zero on the run's, within what
    _stop: threading.Event = field(default_factory=threading.Event)
    _measuring: threading.Lock = field(default_factory=threading.Lock)
    _is_aligning: bool = False
    _here: dict[str, Any] | None = None  # what is installed here
    _thread: threading.Thread | None = None

    @property
    def nodes(self) -> list[AgentNode]:
        return [seen.node for seen in self._hosts]

    def add(self, nodes: Sequence[AgentNode], seconds: float = CHECK_SECONDS, are_late: bool = False) -> list[str]:
        """Begin with hosts, and return what is wrong with each that does not say that it is there: it is let go.

        From here on a thread gives them signs of life. `are_late`: trials may have begun there already.
        """
        about: dict[str, Any] = {"execution_id": self.context.execution_id, "run_dir": str(self.context.run_dir)}
        about |= {"folder": self.folder, "makes": self.makes_folder, "lost_seconds": self.lost_seconds}
        begins = {node.send("begin", **about): node for node in nodes}
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="hosts", daemon=True)
            self._thread.start()
        with contextlib.suppress(TimeoutError):
            for future in as_completed(begins, seconds):
                if future.exception() is None:
                    self._hosts.append(_ContactedHost(begins[future], clock.monotonic_ns(), is_late=are_late))
        problems, nodes_there = [], self.nodes
        for future, node in begins.items():
            if node not in nodes_there:
                late = f"host {node.name} must answer within {seconds:.2g} s, but did not"
                problems.append(str(future.exception()) if future.done() else late)
                node.close(at_once=True)
        return problems

    def let_go(self, node: AgentNode) -> None:
        """Be in contact with a host no more: what ran there has ended by itself."""
        with self._measuring:
            self._hosts = [seen for seen in self._hosts if seen.node is not node]
        node.close(at_once=True)

    def check(self, package: str, nodes: Sequence[AgentNode] | None = None) -> None:
        """Compare what is installed on each host with what is here, and try the shared folder. `nodes`: these alone.

        Raises:
            UserError: they differ, or the run's folder is not the same on a host, or renames or locks do not work there, or its
                processes cannot be told from those here.
        """
        nodes = self.nodes if nodes is None else nodes
        modules = tuple(workload_at(self.context.spec.experiment.workload.target).preload)
        local = self._here = self._here or Agent().probe(package, modules)
        kernel, processes = local["place"]
        for name, installed in answers(sent(nodes, "probe", package=package, modules=modules), CHECK_SECONDS).items():
            if (origin := installed.pop("place"))[0] == kernel and origin[1] != processes:
                raise UserError(
                    f"a host must have its own kernel or the process ids of this one, but host {name} is another container on "
                    "this kernel; use machines, or run the command in that container"
                )
            for item, value in installed.items():
                if value != local[item]:
                    raise UserError(
                        f"{item} must be the same on all hosts, but host {name} has {_text(value)}, and this one "
                        f"{_text(local[item])}; install the same there, or name another option `host_python`"
                    )
        for node in nodes:
            self._try_folder(node)

    def _try_folder(self, node: AgentNode) -> None:
        path = self.context.work_dir / f"shared-{os.getpid()}"
        path.write_text(node.name)
        try:
            with path.open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                shares = {node.name: node.send("share", folder=str(path.parent), name=path.name)}
                answer = answers(shares, CHECK_SECONDS)[node.name]
            problem = answer.get("problem")
            if problem is None and answer["content"] != node.name:
                problem = "it sees other content"
            if problem is None and not answer["is_locked"]:
                problem = "a lock (flock) that is held here does not hold there"
            if problem is None and (path.exists() or not path.with_suffix(".renamed").exists()):
                problem = "what is renamed there keeps its name here"
        finally:
            for leftover in (path, path.with_suffix(".renamed")):
                leftover.unlink(missing_ok=True)
        if problem is not None:
            raise UserError(
                f"the results folder must be shared by all hosts, but host {node.name} and this one do not share "
                f"{self.context.work_dir}: {problem}; use a shared file system with locks (NFS 4, Lustre with -o flock)"
            )

    def keep(self) -> None:
        """Align the hosts' clocks, from now on.

        Raises:
            InfrastructureError: a host's clock cannot be read.
        """
        self._is_aligning = True
        for problem in self.measure():
            raise InfrastructureError(problem)

    def _keep(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with contextlib.suppress(Exception):  # a full disk, an agent of another version: the hosts must hear on
                self.measure()

    def measure(self) -> list[str]:
        """Read the clocks of all hosts at once; return what is wrong with those that are silent, which are lost after a time."""
        problems: list[str] = []
        with self._measuring:
            clocks = [(seen, list[_Reading]()) for seen in self._hosts if not seen.is_lost]
            for _ in range(_TRIES):
                clocks = self._read(clocks, problems)
            for seen, readings in clocks if self._is_aligning else ():
                self._align(seen, min(readings))
        return problems

    def _read(self, clocks: list[_HostClock], problems: list[str]) -> list[_HostClock]:
        """Read the clocks once, and return those that answered."""
        beats = [(host_clock, clock.monotonic_ns(), host_clock[0].node.send("beat")) for host_clock in clocks]
        deadline_ns, answered = after(BEAT_SECONDS), []
        for (seen, readings), sent_ns, beat in beats:
            try:
                host_time, arrived_ns = beat.result(until(deadline_ns))
            except (TimeoutError, InfrastructureError) as error:
                problems.append(str(error) or f"host {seen.node.name} must answer within {BEAT_SECONDS:g} s, but did not")
                if clock.monotonic_ns() - seen.heard_ns > self.lost_seconds * clock.NANOSECONDS:
                    self._lose(seen, str(error))
                continue
            seen.heard_ns = arrived_ns
            offset_ns = (arrived_ns + sent_ns) // 2 - host_time["monotonic_ns"]
            own_ns = host_time["wall_ns"] - host_time["monotonic_ns"]
            readings.append((arrived_ns - sent_ns, offset_ns, host_time["boot_id"], own_ns))
            answered.append((seen, readings))
        return answered

    def _align(self, seen: _ContactedHost, reading: _Reading) -> None:
        """State a host's clock; what was stated of it is widened where it has drifted away."""
        width_ns, offset_ns, boot_id, own_ns = reading
        if boot_id == clock.boot_id():
            return
        assert self.context.events.path is not None
        with self.context.events.path.open("rb") as file:
            header = read_header(file.readline(), str(self.context.events.path))
        # the anchors turn this process's monotonic readings into the wall-clock time of its own events
        ahead_ns = offset_ns + header.anchor_wall_ns - header.anchor_monotonic_ns
        stated = self._stated.get(boot_id)
        if stated is None:
            if seen.is_late:
                width_ns += 2 * abs(own_ns - ahead_ns)
        elif (needed_ns := 2 * abs(ahead_ns - stated[0]) + width_ns) > stated[1]:
            ahead_ns, width_ns = stated[0], needed_ns + needed_ns // 2  # seldom: each time writes a file of events
        else:
            return
        (self.context.run_dir / CLOCKS).mkdir(exist_ok=True)
        with replacing(self.context.run_dir / CLOCKS / boot_id) as file:
            file.write(f"{ahead_ns} {width_ns}".encode())
        self._stated[boot_id] = ahead_ns, width_ns
        with contextlib.suppress(TimeoutError, InfrastructureError):
            seen.node.send("note_clock").result(BEAT_SECONDS)

    def _lose(self, seen: _ContactedHost, error: str) -> None:
        seen.is_lost = True
        silent = (clock.monotonic_ns() - seen.heard_ns) / clock.NANOSECONDS
        self.context.flag(
            LOST,
            f"host {seen.node.name} has not answered for {silent:.0f} s{error and f' ({error})'}; its processes of this "
            f"run end by themselves {self.lost_seconds:g} s after the last contact",
        )
        self.lost(seen.node)

    def end(self, seconds: float = CLEAN_SECONDS) -> list[str]:
        """Clean every host that answers, let all go, and return what is left on them."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(BEAT_SECONDS)
        besides = None if self.folder is not None else clock.boot_id()  # what is here is the supervisor's
        cleanings, leftovers, deadline_ns = sent(self.nodes, "clean", besides=besides), [], after(seconds)
        for seen in self._hosts:
            try:
                remaining = cleanings[seen.node.name].result(0.0 if seen.is_lost else until(deadline_ns)).answer
                leftovers += [f"{entry} on host {seen.node.name}" for entry in remaining]
            except (TimeoutError, InfrastructureError) as error:
                if not seen.is_lost:
                    self._lose(seen, str(error))
        for seen in self._hosts:
            seen.node.close(at_once=seen.is_lost)
        self._hosts.clear()
        return leftovers


def _text(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
