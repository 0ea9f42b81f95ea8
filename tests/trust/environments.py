"""Find living processes by their environments, without the search of tuneoff's own that such tests hold to account."""

from __future__ import annotations

from pathlib import Path

from tuneoff.base.processes import all_pids


def processes_with(text: str) -> list[int]:
    """Return the living processes in whose environment this text stands."""
    found = []
    for pid in all_pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if text.encode() in environment:
            found.append(pid)
    return found
