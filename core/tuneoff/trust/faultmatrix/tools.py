"""What an adapter's author gives for `tuneoff faults`, as data: a plain program, and the framework's parts that can break."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a framework outside its trials, and how it is taken away: exactly one of `process`, `file` and `lock`."""

    fault: str  # a fault of the matrix that strikes a part: head_killed, node_killed, storage_removed, storage_locked
    text: str  # what it is
    process: str = ""  # words of the command line of the process that is killed
    file: str = ""  # the name of the file that is removed
    lock: str = ""  # the name of the file whose lock, a link `<name>.lock` beside it, is left by a holder that died


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTools:
    """For one framework; an adapter's class names it in `fault_tools`."""

    plain: str  # module of a program that uses the framework by itself, as its documentation does: see `plain.py`
    defaults: str  # what that program leaves to the framework's defaults, for the reader
    parts: tuple[Part, ...] = ()

    def part(self, fault: str) -> Part | None:
        """Return the part that a fault takes away, or None: the framework has no such part."""
        return next((part for part in self.parts if part.fault == fault), None)
