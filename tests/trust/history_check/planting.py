"""A copy of a generated run, in which a defect can be planted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from trust.history_check.generated_histories import GeneratedRun
from tuneoff.base.identity import configuration_digest
from tuneoff.record.events import schema
from tuneoff.record.events.schema import Event, Process

change = msgspec.structs.replace


class Planting:
    """A copy of a run whose events may be changed."""

    def __init__(self, run: GeneratedRun, seed: int) -> None:
        self.run = replace(run, pairs=list(run.pairs))
        self.random = random.Random(seed)

    @property
    def pairs(self) -> list[tuple[Process, Event]]:
        return self.run.pairs

    def of(self, *kinds: type[Event], **fields: Any) -> list[int]:
        """Return where events of these types and fields stand."""
        return [
            index
            for index, (_, event) in enumerate(self.pairs)
            if type(event) in kinds and all(getattr(event, name, None) == value for name, value in fields.items())
        ]

    def one(self, *kinds: type[Event], **fields: Any) -> Any:
        """Return one of these events with its process and place; none is not a run for this defect.

        Raises:
            LookupError: there is none.
        """
        found = self.of(*kinds, **fields)
        if not found:
            raise LookupError
        index = self.random.choice(found)
        return (index, *self.pairs[index])

    def drop(self, keep: Callable[[Event], bool]) -> None:
        self.pairs[:] = [pair for pair in self.pairs if keep(pair[1])]

    def own(self, start: schema.TrialStarted, process: Process) -> list[int]:
        """Return where the events of one training stand, its start first."""
        return [
            index
            for index, (writer, event) in enumerate(self.pairs)
            if writer is process and key_of(event) == (start.trial, start.attempt) and getattr(event, "by", "trial") == "trial"
        ]

    def copied(self, start: schema.TrialStarted, process: Process, shift: int, **fields: Any) -> None:
        """Add a process that writes of a training what its own wrote, `shift` later."""
        pid = 90_000 + len(self.pairs)
        other = change(process, pid=pid, t=process.t + shift)
        events = [self.pairs[index][1] for index in self.own(start, process)]
        self.pairs.append((other, other))
        self.pairs.extend((other, change(event, t=event.t + shift, **fields)) for event in events)

    def completed(self) -> tuple[int, Process, schema.TrialStarted]:
        """Return a start of an attempt that completed, with its own end."""
        _, process, end = self.one(schema.TrialEnded, state="completed", by="trial")
        index = next(i for i in self.of(schema.TrialStarted, trial=end.trial, attempt=end.attempt) if self.pairs[i][0] is process)
        return index, process, self.pairs[index][1]  # type: ignore[return-value]

    def clean_of(self, event: Any) -> None:
        if self.of(schema.TrialSubmitted, trial=event.trial, attempt=event.attempt + 1):
            raise LookupError


Plant = Callable[[Planting], None]


def key_of(event: Event) -> tuple[str | None, int | None]:
    return getattr(event, "trial", None), getattr(event, "attempt", None)


def planted(plant: Plant, runs: Iterator[GeneratedRun], count: int) -> Iterator[GeneratedRun]:
    """Yield the first of these runs that such a defect can be planted in, with it."""
    for seed, run in enumerate(runs):
        planting = Planting(run, seed)
        try:
            plant(planting)
        except LookupError:
            continue
        yield planting.run
        count -= 1
        if count == 0:
            return


def done(planting: Planting) -> None:
    budget = planting.run.spec.experiment.budget
    if not planting.run.is_done or budget.wall_clock_seconds is not None:
        raise LookupError


def listed(planting: Planting) -> None:
    if planting.run.spec.experiment.sampler.name != "fixed":
        raise LookupError


def swap_point(planting: Planting) -> None:
    """Let a trial have another one's point."""
    listed(planting)
    _, _, start = planting.completed()
    _, _, other = planting.completed()
    if start.configuration == other.configuration:
        raise LookupError
    reconfigure(planting, start.trial, other.configuration)


def reconfigure(planting: Planting, trial: str, configuration: dict[str, Any]) -> None:
    for index in planting.of(schema.TrialSubmitted, trial=trial):
        process, event = planting.pairs[index]
        planting.pairs[index] = process, change(event, configuration=configuration)
    for index in planting.of(schema.TrialStarted, trial=trial):
        process, event = planting.pairs[index]
        values = {"configuration": configuration, "digest": configuration_digest(configuration)}
        planting.pairs[index] = process, change(event, **values)
