"""A /proc of our own: processes that come, use processors and memory, are adopted, and go, at a test's will."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from tuneoff.base.processes import MARK


@dataclass(frozen=True, kw_only=True)
class FakeProcess:
    """Times in clock ticks, memory in pages."""

    pid: int
    parent: int
    name: str = "python3"
    state: str = "S"
    session: int = 200
    user: int = 0
    system: int = 0
    children_user: int = 0
    children_system: int = 0
    started: int = 100
    rss_pages: int = 10

    def line(self) -> str:
        fields = [self.state, self.parent, 1, self.session, 0, -1, 0, 0, 0, 0, 0, self.user, self.system]
        fields += [self.children_user, self.children_system, 20, 0, 1, 0, self.started, 12345, self.rss_pages]
        return f"{self.pid} ({self.name}) {' '.join(str(field) for field in fields)} 0 0 0\n"


class FakeProc:
    """The folder, with process 1 in it; `forks` counts the processes that were made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.forks = 0
        self._processes: dict[int, FakeProcess] = {}
        (root / "self").mkdir(parents=True)
        self.host()
        self.add(FakeProcess(pid=1, parent=0, name="init", session=1))

    def host(self, busy: int = 0, steal: int = 0) -> None:
        """Write /proc/stat."""
        text = f"cpu  {busy} 0 0 1000 5 0 0 {steal} 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nctxt 1\nbtime 2\n"
        (self.root / "stat").write_text(f"{text}processes {self.forks}\nprocs_running 1\n")

    def add(self, process: FakeProcess, run: str | None = None) -> None:
        """Start a process; `run`: the mark that its environment carries."""
        folder = self.root / str(process.pid)
        folder.mkdir()
        environment = "PATH=/bin\0" + (f"{MARK}={run}\0" if run is not None else "")
        (folder / "environ").write_text(environment)
        (folder / "stat").write_text(process.line())
        self._processes[process.pid] = process
        self.forks += 1

    def change(self, pid: int, **fields: object) -> None:
        """Let a process use something, or be adopted."""
        process = replace(self._processes[pid], **fields)  # type: ignore[arg-type]
        self._processes[pid] = process
        (self.root / str(pid) / "stat").write_text(process.line())

    def pss(self, pid: int, kilobytes: int) -> None:
        (self.root / str(pid) / "smaps_rollup").write_text(f"Rss: 1 kB\nPss: {kilobytes} kB\n")

    def remove(self, pid: int) -> None:
        """End a process and wait for it: who has its file open reads nothing any more."""
        (self.root / str(pid) / "stat").write_text("")
        shutil.rmtree(self.root / str(pid))
        del self._processes[pid]
