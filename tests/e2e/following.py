"""Follow what this process starts, by pid and parent, whatever it does to its environment, and tell what of it is left."""

from __future__ import annotations

import os
from pathlib import Path

from tuneoff.base.processes import become_subreaper, command_line, descendants, is_alive
from tuneoff.run.supervisor.leftovers import remembered, shared_memory
from tuneoff.trust.check.footprint import Footprint, RunTraces, all_listeners


class Following:
    """Follows what this process starts from now on, and what that starts."""

    def __init__(self) -> None:
        become_subreaper()
        self._before, self._seen = Footprint.now(), RunTraces()
        self._executions: list[Path] = []

    def look(self, results: Path) -> str:
        """Note what the processes hold now and which executions there are; return how much they hold."""
        self._executions = list(results.glob("runs/*/*"))
        self._seen.look([pid for pid in descendants(os.getpid()) if pid not in self._before.processes and is_alive(pid)])
        return f"{len(self._seen.pids)} processes, {len(self._seen.listeners)} ports, {len(self._memory())} shared memories"

    def left(self) -> list[str]:
        """Return what is there still."""
        pids = [pid for pid in descendants(os.getpid()) if pid not in self._before.processes and is_alive(pid)]
        found = [f"process {pid} ({command_line(pid)})" for pid in pids]
        found += [f"port {listener.port}" for listener in all_listeners() & set(self._seen.listeners)]
        found += [f"shared memory {name}" for name in self._memory()]
        entries = (entry for execution in self._executions for entry in remembered(execution))
        return found + [f"{kind} {value}" for kind, value in entries if os.path.exists(value)]

    def _memory(self) -> list[str]:
        return [name for name in shared_memory() - self._before.memory if f"/dev/shm/{name}" in self._seen.paths]
