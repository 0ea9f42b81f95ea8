"""Nothing comes before its cause: a trial is handed out, started, trained, ended; then it is told, retried, named best, tested.

Clocks of one host tell that exactly. What another host wrote is not judged: nobody knows by how much its clock is off.
"""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.clock import NANOSECONDS
from tuneoff.record.events import schema
from tuneoff.trust.history_check.counterexample import Breach
from tuneoff.trust.history_check.trial_histories import Attempt, Moment, RunHistory, Trial


def out_of_order(history: RunHistory) -> Iterator[Breach]:
    """Yield what was before its cause: of attempts, then of what the framework, the coordinator and the test made of them."""
    for trial in history.trials.values():
        before: Attempt | None = None
        for attempt in trial.attempts:
            name = f"attempt {attempt.number} of trial {trial.name}"
            starts = [training.start for training in attempt.trainings[:1]]
            for start in starts:
                yield from _early(
                    history, "started-early", start, attempt.submitted[:1], f"{name} was started", "it was handed out"
                )
                for seen in attempt.observed[:1]:
                    what = f"the end of {name} was seen"
                    yield from _early(history, "ended-before-start", seen, [start], what, "it was started")
            if before is not None and before.end is not None:
                for begun in [*attempt.submitted, *starts][:1]:
                    what = f"{name} was begun"
                    yield from _early(history, "retried-early", begun, [before.end], what, "the one before it ended")
            before = attempt
    best = [moment for moment in history.reactions if isinstance(moment.event, schema.BestKnown)][-1:]
    for moment in history.reactions:
        event, named = moment.event, history.trials.get(moment.event.trial)
        if isinstance(event, schema.Tested):
            yield from _early(history, "tested-early", moment, best, "the test's result was there", "the best trial was known")
        elif named is None:
            continue
        elif isinstance(event, schema.Stage):
            what = f"the framework was told of trial {event.trial}"
            yield from _early(history, "told-early", moment, _known(named), what, "it had that result")
        elif isinstance(event, schema.StopDecided):
            epochs = [one for one in _epochs(named) if one.event.epoch == event.epoch]
            what = f"the stop of trial {event.trial} after epoch {event.epoch} was decided"
            yield from _early(history, "stopped-early", moment, epochs[:1], what, "that epoch was trained")
        else:
            lasts = [training.end or training.last for training in named.trainings]
            yield from _early(history, "best-early", moment, lasts[-1:], f"trial {event.trial} was named best", "it ended")


def _known(trial: Trial) -> list[Moment]:
    """Return what a framework cannot know before: the last epoch of a trial that completed at once, else its first start."""
    trainings = list(trial.trainings)
    if len(trainings) == 1 and trial.attempts[-1].outcome == "completed" and (epochs := list(_epochs(trial))):
        return epochs[-1:]
    return [training.start for training in trainings[:1]]


def _epochs(trial: Trial) -> Iterator[Moment]:
    """Yield the epochs of a trial."""
    for training in trial.trainings:
        yield from (training.moment(event) for event in training.rest if isinstance(event, schema.Epoch))


def _early(history: RunHistory, rule: str, effect: Moment, causes: list[Moment], what: str, cause: str) -> Iterator[Breach]:
    """Yield the breach of an effect that was before its cause, by the clock of one host."""
    for first in causes:
        if history.slack_ns(first) or history.slack_ns(effect):
            continue
        early = history.at(first) - history.at(effect)
        if early > 0:
            text = f"{what} {early / NANOSECONDS:.3f} s before {cause}"
            yield Breach(rule, text, [first, effect], [effect])
