"""What the checks read: the runs that were made, what their processes and the machine told, what else was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tuneoff.base.capabilities import Capabilities
from tuneoff.base.findings import Check, Finding, judged
from tuneoff.base.layout import EVENTS
from tuneoff.experiment.names import entry_label
from tuneoff.experiment.spec import EnvironmentSpec, ExperimentSpec
from tuneoff.measure.use import SHARE
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Event, Process, TrialEnded
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.check.footprint import Leftover, ListeningSocket
from tuneoff.trust.check.probe_workload import NOTES
from tuneoff.trust.history_check.counterexample import Counterexample
from tuneoff.trust.history_check.rules import check_history
from tuneoff.trust.space_test.draw import Drawing

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
    environment: EnvironmentSpec | None = None

    @property
    def label(self) -> str:
        platform = self.platform if self.platform != self.capabilities.platforms[0] else None
        return entry_label(self.name, platform, {}, 0, self.environment)


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """One finished run: its record and folder, and what was seen from outside."""

    name: str
    experiment: ExperimentSpec
    folder: Path
    notes_folder: Path
    stored: RunRecord | None = None  # None: see `problem`
    problem: str = ""
    listeners: tuple[ListeningSocket, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    end_seconds: float | None = None  # from what was done to it from outside to its end
    is_loaded: bool = False  # the check itself kept the processors busy meanwhile

    @property
    def record(self) -> RunRecord:
        if self.stored is None:
            raise NoRecordError(f"run {self.name} has no record: {self.problem}")
        return self.stored

    @property
    def others_percent(self) -> float | None:
        """The share of the processors that other programs used meanwhile, as the record has it; None: it is not known."""
        share = self.stored.metrics.get(SHARE) if self.stored is not None and not self.is_loaded else None
        return share.value if share is not None else None

    @cached_property
    def events(self) -> tuple[tuple[Process, Event], ...]:
        """All events in order of time, each with its process."""
        return tuple(EventLog(self.folder / EVENTS).merged())

    @cached_property
    def breaches(self) -> tuple[Counterexample, ...]:
        """What breaks the rules of a sound history, in no other way than `tuneoff verify` finds it."""
        record = self.record
        return tuple(check_history(EventLog(self.folder / EVENTS), record.run_spec(), is_done=record.status == "done"))

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one type in order of time."""
        return [event for _, event in self.events if isinstance(event, kind)]

    @cached_property
    def trials_ended_ns(self) -> int:
        """When the last trial had ended, on the machine's clock."""
        return max((event.t for event in self.of(TrialEnded)), default=0)

    @cached_property
    def notes(self) -> tuple[Mapping[str, Any], ...]:
        """What the workload noted in its processes; nothing where they run on another machine."""
        path = self.notes_folder / NOTES
        return tuple(json.loads(line) for line in path.read_text().splitlines()) if path.exists() else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswer:
    """What was answered to one request: `refused`, `accepted`, or `broken` (an error that is not a refusal)."""

    family: str  # undeclared | declared | adapter-options | sampler-options
    request: str
    outcome: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Answers to requests that must be refused or served, and what planning did to the process and the machine."""

    answers: Sequence[RequestAnswer]
    framework_imported: bool
    leftovers: Sequence[Leftover] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterEvidence:
    """All that was made of one adapter; `missing` says of a name that checks read why it is not there."""

    subject: Subject
    runs: Mapping[str, FinishedRun] = field(default_factory=dict)
    drawn: Drawing | None = None  # of the adapter's random sampler, or what trials received
    refusals: Refusals | None = None
    missing: Mapping[str, Finding] = field(default_factory=dict)

    def some(self, *names: str) -> Iterator[FinishedRun]:
        """Yield those of the runs that were made."""
        return (self.runs[name] for name in names if name in self.runs)


AdapterCheck = Check[AdapterEvidence]


def run_check(
    id: str, *, reads: tuple[str, ...], **about: Any
) -> Callable[[Callable[[FinishedRun], Iterable[str]]], AdapterCheck]:
    """Make a check of the function below, which yields the problems of one run: it judges those of `reads` that were made."""

    def decorator(problems: Callable[[FinishedRun], Iterable[str]]) -> AdapterCheck:
        def judge(evidence: AdapterEvidence) -> Finding:
            return judged(problem for run in evidence.some(*reads) for problem in problems(run))

        return Check(id=id, judge=judge, reads=reads, needs_all=False, **about)

    return decorator
