"""What the checks read: the runs that were made, and what else was asked of the adapter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tuneoff.capabilities import Capabilities
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Event, Process
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.check.fault_injection import RAISED
from tuneoff.trust.check.footprint import Left
from tuneoff.trust.check.listeners import ListeningSocket
from tuneoff.trust.check.machine import Machine
from tuneoff.trust.check.model import Finding
from tuneoff.trust.check.probe_workload import NOTES

E = TypeVar("E", bound=Event)


class NoRecordError(Exception):
    """A run came to no record, so nothing can be said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The adapter that is checked, on one of its platforms."""

    name: str
    target: str
    platform: str
    capabilities: Capabilities
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_emulated(self) -> bool:
        return self.platform in self.capabilities.emulated_platforms

    @property
    def label(self) -> str:
        return f"{self.name}@{self.platform}" if self.is_emulated else self.name


@dataclass(frozen=True, kw_only=True)
class Made:
    """One finished run: its record and folder, and what was seen from outside."""

    name: str
    experiment: ExperimentSpec
    folder: Path
    notes_folder: Path
    stored: RunRecord | None = None  # None: see `problem`
    problem: str = ""
    listeners: tuple[ListeningSocket, ...] = ()
    left: tuple[Left, ...] = ()
    end_seconds: float | None = None  # from what was done to it from outside to its end
    machine: Machine | None = None  # what others did meanwhile

    @property
    def record(self) -> RunRecord:
        if self.stored is None:
            raise NoRecordError(f"run {self.name} has no record: {self.problem}")
        return self.stored

    @cached_property
    def events(self) -> tuple[tuple[Process, Event], ...]:
        """All events in order of time, each with its process."""
        return tuple(EventLog(self.folder / EVENTS).merged())

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one type in order of time."""
        return [event for _, event in self.events if isinstance(event, kind)]

    @cached_property
    def notes(self) -> tuple[Mapping[str, Any], ...]:
        """What the workload noted in its processes; nothing where they run on another machine."""
        path = self.notes_folder / NOTES
        return tuple(json.loads(line) for line in path.read_text().splitlines()) if path.exists() else ()

    @property
    def was_planted(self) -> bool:
        """Whether a failure was raised inside the adapter's own code."""
        return (self.folder / RAISED).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Configurations of the adapter's random sampler, and where they come from."""

    source: str  # "draw": of its own method; "runs": of trials
    configurations: Sequence[Mapping[str, Any]]
    problem: str = ""  # why there are no more: the framework gave what is not in the space, or failed


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswer:
    """What was answered to one request: `refused`, `accepted`, or `broken` (an error that is no refusal)."""

    family: str  # undeclared | declared | adapter-options | sampler-options | resume
    request: str
    outcome: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Answers to requests that must be refused or served, and what planning did to the process and the machine."""

    answers: Sequence[RequestAnswer]
    framework_imported: bool
    left: Sequence[Left] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterEvidence:
    """All that was made of one adapter; `missing` says of a name that checks read why it is not there."""

    subject: Subject
    runs: Mapping[str, Made] = field(default_factory=dict)
    drawn: Drawn | None = None
    refusals: Refusals | None = None
    missing: Mapping[str, Finding] = field(default_factory=dict)

    def absent(self, name: str) -> Finding | None:
        """Return what to say of a name that was not made, or None where it was."""
        return self.missing.get(name)

    def record(self, name: str) -> RunRecord:
        return self.runs[name].record

    def some(self, *names: str) -> Iterator[Made]:
        """Yield those of the runs that were made."""
        return (self.runs[name] for name in names if name in self.runs)
