"""The coordinator's contact with the hosts of a run: checks before the start, clocks and signs of life, cleaning at the end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base import clock
from tuneoff.base.files import replacing
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.record.events.reader import read_header
from tuneoff.record.events.writer import CLOCKS
from tuneoff.record.run_context import RunContext
from tuneoff.workload import workload_at
from tuneoff_adapters.hosts.agent import Agent
from tuneoff_adapters.hosts.host import Node, answers, sent

BEAT_SECONDS = 2.0
CHECK_SECONDS = 60.0  # for a host's answer before anything is started: its Python may have to come from a slow disk
CLEAN_SECONDS = 15.0
LOST = "host_lost"  # flag
_TRIES = 5  # readings of a host's clock, of which the narrowest counts


@dataclass(slots=True)
class _Seen:
    """One host. `ahead_ns`: of its monotonic clock's zero on the run's scale of wall-clock time, and within what."""

    node: Node
    heard_ns: int
    is_lost: bool = False
    ahead_ns: int | None = None
    width_ns: int = 0


@dataclass(slots=True)
class Contact:
    """All hosts of a run."""

    context: RunContext
    folder: str | None  # of temporary files on each host
    lost_seconds: float
    _hosts: list[_Seen] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def nodes(self) -> list[Node]:
        return [seen.node for seen in self._hosts]

    def add(self, nodes: Sequence[Node], seconds: float = CHECK_SECONDS) -> list[str]:
        """Begin with hosts, and return what is wrong with each that does not say that it is there: it is let go."""
        asked = sent(
            nodes,
            "begin",
            execution_id=self.context.execution_id,
            run_dir=str(self.context.run_dir),
            folder=self.folder,
            lost_seconds=self.lost_seconds,
        )
        problems, deadline_ns = [], _after(seconds)
        for node in nodes:
            try:
                answers({node.name: asked[node.name]}, _until(deadline_ns))
            except InfrastructureError as error:
                problems.append(str(error))
                node.close(at_once=True)
            else:
                self._hosts.append(_Seen(node, clock.monotonic_ns()))
        return problems

    def check(self, package: str) -> None:
        """Compare what is installed on each host with what is here, and try the shared folder.

        Raises:
            StepError: they differ, or the run's folder is not the same on a host, or renames or locks do not work there.
        """
        modules = tuple(workload_at(self.context.spec.experiment.workload.target).preload)
        here = Agent().probe(package, modules)
        for name, there in answers(sent(self.nodes, "probe", package=package, modules=modules), CHECK_SECONDS).items():
            for what, value in there.items():
                if value != here[what]:
                    raise StepError(
                        f"{what} must be the same on all hosts, but host {name} has {_text(value)}, and this one "
                        f"{_text(here[what])}; install the same there, or name another option `host_python`"
                    )
        for node in self.nodes:
            self._try_folder(node)

    def _try_folder(self, node: Node) -> None:
        path = self.context.work_dir / f"shared-{os.getpid()}"
        path.write_text(node.name)
        try:
            with path.open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                asked = {node.name: node.send("share", folder=str(path.parent), name=path.name)}
                told = answers(asked, CHECK_SECONDS)[node.name]
            problem = told.get("problem")
            if problem is None and told["content"] != node.name:
                problem = "it sees other content"
            if problem is None and not told["is_locked"]:
                problem = "a lock (flock) that is held here does not hold there"
            if problem is None and (path.exists() or not path.with_suffix(".renamed").exists()):
                problem = "what is renamed there keeps its name here"
        finally:
            for left in (path, path.with_suffix(".renamed")):
                left.unlink(missing_ok=True)
        if problem is not None:
            raise StepError(
                f"the results folder must be shared by all hosts, but host {node.name} and this one do not share "
                f"{self.context.work_dir}: {problem}; use a shared file system with locks (NFS 4, Lustre with -o flock)"
            )

    def keep(self, look: Callable[[], None] = lambda: None) -> None:
        """Align the hosts' clocks, then keep in touch in a thread, which calls `look` between."""
        for seen in self._hosts:
            self._measure(seen)
        self._thread = threading.Thread(target=self._keep, args=(look,), name="hosts", daemon=True)
        self._thread.start()

    def _keep(self, look: Callable[[], None]) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            look()
            for seen in list(self._hosts):
                if not seen.is_lost:
                    self._measure(seen)

    def _measure(self, seen: _Seen) -> None:
        """Read a host's clock; what was stated of it is widened where it has drifted away, and a host that is silent is lost."""
        readings = []
        for _ in range(_TRIES):
            sent_ns = clock.monotonic_ns()
            try:
                told, arrived_ns = seen.node.send("beat").result(BEAT_SECONDS)
            except (TimeoutError, InfrastructureError) as error:
                if clock.monotonic_ns() - seen.heard_ns > self.lost_seconds * clock.NANOSECONDS:
                    self._lose(seen, str(error))
                return
            readings.append((arrived_ns - sent_ns, (arrived_ns + sent_ns) // 2 - told["monotonic_ns"], told["boot_id"]))
        seen.heard_ns = clock.monotonic_ns()
        width_ns, offset_ns, boot_id = min(readings)
        if boot_id == clock.boot_id():
            return
        ahead_ns = offset_ns + self._wall_ns()
        if seen.ahead_ns is None:
            seen.ahead_ns, seen.width_ns = ahead_ns, width_ns
        elif (needed_ns := 2 * abs(ahead_ns - seen.ahead_ns) + width_ns) > seen.width_ns:
            seen.width_ns = needed_ns + needed_ns // 2  # seldom: each time writes a file of events
        else:
            return
        (self.context.run_dir / CLOCKS).mkdir(exist_ok=True)
        with replacing(self.context.run_dir / CLOCKS / boot_id) as file:
            file.write(f"{seen.ahead_ns} {seen.width_ns}".encode())
        with contextlib.suppress(TimeoutError, InfrastructureError):
            seen.node.send("note_clock").result(BEAT_SECONDS)

    def _lose(self, seen: _Seen, error: str) -> None:
        seen.is_lost = True
        silent = (clock.monotonic_ns() - seen.heard_ns) / clock.NANOSECONDS
        self.context.flag(
            LOST,
            f"host {seen.node.name} has not answered for {silent:.0f} s{error and f' ({error})'}; whatever lives there of this "
            f"run ends itself {self.lost_seconds:g} s after it last heard from here",
        )

    def _wall_ns(self) -> int:
        """Return what turns this process's monotonic readings into the wall-clock time of its own events."""
        assert self.context.events.path is not None
        with self.context.events.path.open("rb") as file:
            header = read_header(file.readline(), str(self.context.events.path))
        return header.anchor_wall_ns - header.anchor_monotonic_ns

    def end(self, seconds: float = CLEAN_SECONDS) -> list[str]:
        """Clean every host that answers, let all go, and return what is left on them."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(BEAT_SECONDS)
        besides = None if self.folder is not None else clock.boot_id()  # what is here is the supervisor's
        asked, left, deadline_ns = sent(self.nodes, "clean", besides=besides), [], _after(seconds)
        for seen in self._hosts:
            try:
                told = asked[seen.node.name].result(0.0 if seen.is_lost else _until(deadline_ns)).answer
                left += [f"{entry} on host {seen.node.name}" for entry in told]
            except (TimeoutError, InfrastructureError) as error:
                if not seen.is_lost:
                    self._lose(seen, str(error))
        for seen in self._hosts:
            seen.node.close(at_once=seen.is_lost)
        self._hosts.clear()
        return left


def _after(seconds: float) -> int:
    return clock.monotonic_ns() + int(seconds * clock.NANOSECONDS)


def _until(deadline_ns: int) -> float:
    return max(0.0, (deadline_ns - clock.monotonic_ns()) / clock.NANOSECONDS)


def _text(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
