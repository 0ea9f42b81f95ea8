"""A run's events by trial and attempt: who handed it out, who trained it, who saw its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tuneoff.record.event_index import Collected, EventOfProcess, Timeline
from tuneoff.record.events import schema
from tuneoff.record.events.schema import Event, Process

_OBSERVED = (schema.TrialEnded, schema.TrialKilled, schema.WorkerDied)
_REACTIONS = (schema.Stage, schema.StopDecided, schema.BestKnown, schema.Tested)
_IN_TRAINING = (schema.TrialLoaded, schema.Epoch, schema.Reported, schema.TrialEnded)


class Moment(NamedTuple):
    """One event of a trial."""

    process: Process
    event: Any


@dataclass(slots=True)
class Training:
    """One process's start of an attempt, and what it wrote of it from then on, in its own order."""

    start: Moment
    rest: list[Any] = field(default_factory=list)  # events alone: most of a run's are here

    def moment(self, event: Any) -> Moment:
        return self.start._replace(event=event)

    @property
    def last(self) -> Moment:
        return self.moment(self.rest[-1]) if self.rest else self.start

    @property
    def end(self) -> Moment | None:
        """Return the first end that the process wrote."""
        return next((self.moment(event) for event in self.rest if isinstance(event, schema.TrialEnded)), None)

    @property
    def epochs(self) -> int:
        return sum(isinstance(event, schema.Epoch) for event in self.rest)

    @property
    def epochs_trained(self) -> int:
        return sum(isinstance(event, schema.Epoch) and not event.restored for event in self.rest)


@dataclass(slots=True)
class AttemptHistory:
    """All that was written of one attempt; `observed`: ends, kills and deaths, by others than its own process."""

    number: int
    submitted: list[Moment] = field(default_factory=list)
    trainings: list[Training] = field(default_factory=list)
    observed: list[Moment] = field(default_factory=list)
    strays: list[Moment] = field(default_factory=list)  # of a process that never started it

    @property
    def end(self) -> Moment | None:
        """Return the end that counts: the last training's own, else the first that an observer wrote."""
        end = self.trainings[-1].end if self.trainings else None
        return end or next(iter(self.observed), None)

    @property
    def outcome(self) -> str:
        """Return `completed`, `pruned` or `failed`, `workload` where it failed by its workload's doing; "" where nobody says."""
        event = self.end.event if self.end is not None and self.trainings else None
        charged = getattr(event, "charged", None)
        return charged if charged == "workload" else getattr(event, "state", "")

    def moments(self) -> list[Moment]:
        """Return what draws it: handed out, each start and last word, what observers saw."""
        pairs = ((training.start, training.last) for training in self.trainings)
        ends = [moment for start, last in pairs for moment in ((start, last) if last is not start else (start,))]
        return [*self.submitted, *ends, *self.observed]


@dataclass(slots=True)
class Trial:
    """One trial: its attempts by number, and what was refused in its name."""

    name: str
    attempts: list[AttemptHistory] = field(default_factory=list)
    refused: list[Moment] = field(default_factory=list)

    @property
    def first(self) -> Moment | None:
        """Return the first start, else the first submission: both have a configuration."""
        starts = (training.start for training in self.trainings)
        return next(starts, None) or next((moment for attempt in self.attempts for moment in attempt.submitted), None)

    @property
    def trainings(self) -> Iterator[Training]:
        return (training for attempt in self.attempts for training in attempt.trainings)


class RunHistory:
    """The trials of a run by name, from its events, which are read once."""

    def __init__(self, events: Iterable[tuple[Process, Event]]) -> None:
        self.trials: dict[str, Trial] = {}
        self.flags: set[str] = set()
        self.goals: list[Moment] = []  # who ended the run at its goal learned of it
        self.reactions: list[Moment] = []  # what follows from trials: told, stopped, named best, tested
        self._read(events)

    def at(self, moment: Moment) -> int:
        """Return when a moment was, in nanoseconds since the run's start."""
        return self._timeline.at(moment.process, moment.event.t)

    def slack_ns(self, moment: Moment) -> int:
        """Return by how much that may be wrong: another host's clock is known to an uncertainty only."""
        return self._timeline.uncertainty_ns(moment.process)

    def _read(self, events: Iterable[tuple[Process, Any]]) -> None:
        collected = Collected()
        attempts: dict[tuple[str, int], AttemptHistory] = {}
        refused: dict[str, list[Moment]] = {}
        current: Process | None = None
        opened: dict[int, dict[tuple[str, int], Training]] = {}
        running: dict[tuple[str, int], Training] = {}  # of the current process
        for process, event in events:
            if process is not current:
                current = process
                if id(process) not in opened:
                    collected.processes.append(process)
                running = opened.setdefault(id(process), {})
            kind = type(event)
            if kind is schema.TrialRefused:
                refused.setdefault(event.trial, []).append(Moment(process, event))
            elif kind is schema.Flag:
                self.flags.add(event.name)
            elif kind is schema.GoalMet:
                self.goals.append(Moment(process, event))
            elif kind is schema.StepStarted:
                collected.steps_started.append(EventOfProcess(process, event))
            elif kind in _REACTIONS and event.trial is not None and getattr(event, "name", "tell") == "tell":
                self.reactions.append(Moment(process, event))
            elif kind in _IN_TRAINING or kind in _OBSERVED or kind is schema.TrialSubmitted or kind is schema.TrialStarted:
                if event.trial is None:
                    continue
                key = event.trial, event.attempt
                if key in running and kind in _IN_TRAINING and getattr(event, "by", "trial") == "trial":
                    running[key].rest.append(event)
                    continue
                moment = Moment(process, event)
                attempt = attempts.get(key)
                if attempt is None:
                    attempt = attempts[key] = AttemptHistory(event.attempt)
                if kind is schema.TrialSubmitted:
                    attempt.submitted.append(moment)
                elif kind is schema.TrialStarted:
                    running[key] = Training(moment)
                    attempt.trainings.append(running[key])
                elif kind in _OBSERVED and getattr(event, "by", "") != "trial":
                    attempt.observed.append(moment)
                else:
                    attempt.strays.append(moment)
        self._timeline = Timeline(collected)
        self.reactions.sort(key=self.at)  # of several best ones the last counts
        self._add(attempts, refused)

    def _add(self, attempts: dict[tuple[str, int], AttemptHistory], refused: dict[str, list[Moment]]) -> None:
        """Join attempts to their trials. A trial that was only refused is none."""
        trained = {name for (name, _), attempt in attempts.items() if attempt.trainings}
        for (name, _), attempt in sorted(attempts.items(), key=lambda item: item[0]):
            if name in trained or name not in refused:
                attempt.trainings.sort(key=lambda training: self.at(training.start))
                attempt.observed.sort(key=self.at)
                self.trials.setdefault(name, Trial(name)).attempts.append(attempt)
        for name in refused.keys() & trained:
            self.trials[name].refused += refused[name]
