"""What breaks a rule of a run's history: one line, and at most ten events that show it, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.events import schema
from tuneoff.trust.history_check.trial_histories import Moment, RunHistory

MOST_EVENTS = 10
MOST_WRONG = 4  # of them
MISSING = ("lost", "no-end", "budget-short", "given-point-never")  # rules whose breach is that nothing more was written


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEvent:
    """One event of a drawing; `seconds` since the run's start; `slot` where its process told one."""

    seconds: float
    process: str
    slot: int | None
    event: str
    trial: str
    attempt: int | None
    is_wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A broken rule with the first breach of it, and how many there are."""

    rule: str
    text: str
    count: int
    events: tuple[DrawnEvent, ...]

    @property
    def line(self) -> str:
        """The breach as one line."""
        return self.text if self.count == 1 else f"{self.text}; and {self.count - 1} more like it"

    def drawing(self) -> list[str]:
        """Return lines: a column of time, one per process, what is wrong marked by `<--`."""
        lanes = list(dict.fromkeys(event.process for event in self.events))
        slots = {event.process: event.slot for event in self.events if event.slot is not None}
        heads = [f"{lane}{f' (slot {slots[lane]})' if lane in slots else ''}" for lane in lanes]
        words = [
            f"{event.trial}{f'#{event.attempt}' if event.attempt is not None else ''} {event.event}" for event in self.events
        ]
        width = max(map(len, (*heads, *words)), default=0) + 2
        lines = [f"{'seconds':>10}  {''.join(head.ljust(width) for head in heads)}".rstrip()]
        for event, word in zip(self.events, words, strict=True):
            lane_index = lanes.index(event.process)
            cells = "".join((word if index == lane_index else "|").ljust(width) for index in range(len(lanes)))
            lines.append(f"{event.seconds:>10.3f}  {cells}{'<--' if event.is_wrong else ''}".rstrip())
        return [*lines, f"{'':>10}  and nothing more of it"] if self.rule in MISSING else lines


class Breach(NamedTuple):
    """One trial's breach of a rule; `moments` show it, of which `wrong` are what must not be (none: something is missing)."""

    rule: str
    text: str
    moments: Sequence[Moment]
    wrong: Sequence[Moment] = ()


def counterexample(history: RunHistory, breach: Breach, count: int) -> Counterexample:
    """Draw what shows a broken rule in order of time: the first events that are wrong, and of the others the latest."""

    def order(moment: Moment) -> tuple[int, int]:
        return history.at(moment), moment.event.seq

    ids = {id(moment) for moment in breach.wrong}
    marked = list(breach.wrong[:MOST_WRONG])
    others = sorted((moment for moment in breach.moments if id(moment) not in ids), key=order)
    kept = [*others[len(marked) - MOST_EVENTS :], *marked]  # of a line that stands twice, the second one is wrong
    events = tuple(_drawn(history, moment, id(moment) in ids) for moment in sorted(kept, key=order))
    return Counterexample(rule=breach.rule, text=breach.text, count=count, events=events)


def _drawn(history: RunHistory, moment: Moment, is_wrong: bool) -> DrawnEvent:
    event, process = moment.event, moment.process
    details = (getattr(event, name, None) for name in ("name", "epoch", "state", "reason"))  # what tells it from others
    texts = [str(detail) for detail in details if detail is not None]
    return DrawnEvent(
        seconds=history.at(moment) / NANOSECONDS,
        process=f"{process.role} {process.pid}",
        slot=event.slot if isinstance(event, schema.TrialStarted) and process.role != "pod" else None,
        event=" ".join([event.__struct_config__.tag.removeprefix("trial_"), *texts]),
        trial=event.trial,
        attempt=getattr(event, "attempt", None),
        is_wrong=is_wrong,
    )
