"""The rules of a sound history, each with what legally looks like a breach: kills, limits, refusals."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tuneoff.base.clock import NANOSECONDS
from tuneoff.base.format import counted
from tuneoff.base.identity import configuration_digest
from tuneoff.base.layout import POD
from tuneoff.experiment.spec import RunSpec, Workers
from tuneoff.experiment.strategies import listed_configurations
from tuneoff.record.events import schema
from tuneoff.record.events.schema import Event, Process
from tuneoff.trust.history_check.counterexample import Breach, Counterexample, counterexample
from tuneoff.trust.history_check.trial_histories import AttemptHistory, Moment, RunHistory, Training, Trial

Listed = Sequence[Mapping[str, Any]] | None
DEVICE_RULES = ("other-device", "shared-device")
BEFORE = 4  # events of a process that are drawn before the one that is wrong


def check_history(events: Iterable[tuple[Process, Event]], spec: RunSpec, *, is_done: bool) -> list[Counterexample]:
    """Return one counter-example for each rule that a run's events break; time and memory are linear in the events.

    `events`: of a run, each file's in its order; `is_done`: the run came to its end, so that nothing may be open. What a run that
    was killed left open is legal.
    """
    history = RunHistory(events)
    by_rule: dict[str, list[Breach]] = defaultdict(list)
    for trial in history.trials.values():
        for breach in _of_trial(history, trial, spec, is_done):
            by_rule[breach.rule].append(breach)
    listed = listed_configurations(spec)
    rest = (*_slots(history), *_devices(history, spec.experiment.workers), *_out_of_order(history), *_goal(history, spec))
    for breach in (*rest, *_budget(history, spec, listed, is_done), *_given(history, spec, listed, is_done)):
        by_rule[breach.rule].append(breach)
    return [counterexample(history, breaches[0], len(breaches)) for breaches in by_rule.values()]


def _of_trial(history: RunHistory, trial: Trial, spec: RunSpec, is_done: bool) -> Iterator[Breach]:
    planned, is_limited = spec.experiment.budget.epochs_per_trial, _is_limited(history, spec)
    before: AttemptHistory | None = None
    for attempt in trial.attempts:
        expected = 1 if before is None else before.number + 1
        name, seen = f"attempt {attempt.number} of trial {trial.name}", attempt.moments()
        if attempt.number != expected:
            yield Breach("attempt-numbers", f"{name} was begun, but attempt {expected} is the next", seen, seen[:1])
        if attempt.number - 1 > spec.experiment.failures.retries:
            text = f"{name} is retry {attempt.number - 1}, but `failures.retries` is {spec.experiment.failures.retries}"
            yield Breach("too-many-retries", text, seen, seen[:1])
        if before is not None:
            yield from _after(trial, before, attempt)
        if len(attempt.submitted) > 1:
            count = counted(len(attempt.submitted), "time")
            yield Breach("handed-out-twice", f"{name} was handed out {count}", seen, attempt.submitted[1:])
        starts = [training.start for training in attempt.trainings]
        if starts and not attempt.submitted:
            yield Breach("never-handed-out", f"{name} was started, but never handed out", seen, starts)
        if attempt.strays:
            text = f"a process wrote of {name}, but never started it"
            yield Breach("never-started", text, [*seen, *attempt.strays], attempt.strays)
        # In a run that is done each trial has an end; one that trained all its epochs is complete without.
        if is_done and attempt is trial.attempts[-1] and attempt.end is None:
            if not attempt.trainings and not is_limited:
                yield Breach("lost", f"{name} was handed out, but neither started nor failed, and the run is done", seen)
            elif attempt.trainings and attempt.trainings[-1].epochs < planned:
                yield Breach("no-end", f"{name} was started, but has no end, and the run is done", seen)
        for training in attempt.trainings:
            yield from _of_training(name, attempt, training, planned)
        before = attempt
    yield from _configuration(trial)
    yield from _restored(history, trial)
    yield from _at_once(history, trial)
    started = [training.start for training in trial.trainings]
    if trial.refused and any(_is_later(history, trial.refused[0], start) for start in started):
        yield Breach(
            "ran-though-refused", f"trial {trial.name} was refused, and ran afterwards", [*trial.refused, *started], started
        )


def _after(trial: Trial, before: AttemptHistory, attempt: AttemptHistory) -> Iterator[Breach]:
    """An attempt follows another one only where that failed, by no doing of its workload.

    A framework may try one again whose process died after its last epoch, before it could write its end.
    """
    seen = [*before.moments(), *attempt.moments()]
    begun = attempt.moments()[:1]
    is_own = before.trainings and before.trainings[-1].end is not None
    is_retried_death = not is_own and any(isinstance(moment.event, schema.WorkerDied) for moment in before.observed)
    if before.outcome in ("completed", "pruned") and not is_retried_death:
        text = f"trial {trial.name} had ended in attempt {before.number}, and was begun again"
        yield Breach("resurrected", text, seen, begun)
    elif before.outcome == "workload":
        text = f"attempt {before.number} of trial {trial.name} failed by its workload's doing, and was tried again"
        yield Breach("retried-own-failure", text, seen, begun)
    elif before.end is None:
        text = f"attempt {attempt.number} of trial {trial.name} was begun, though no event ends attempt {before.number}"
        yield Breach("retried-without-end", text, seen, begun)


def _of_training(name: str, attempt: AttemptHistory, training: Training, planned: int) -> Iterator[Breach]:
    """A process trains epochs 1, 2, 3, ... once each, and says nothing after its end; yields its first breach.

    It is complete after all planned ones, or after one at least where it says that its training ended by itself.
    """
    epoch = 0
    is_over = False
    for index, event in enumerate(training.rest):
        breach = None
        if is_over:
            is_end = isinstance(event, schema.TrialEnded)
            breach = ("ended-twice", "ended twice") if is_end else ("after-its-end", "went on after its end")
        elif isinstance(event, schema.Epoch):
            epoch += 1
            if event.epoch != epoch:
                breach = "epochs", f"trained epoch {event.epoch}, where {epoch} is the next"
            elif epoch > planned:
                breach = "epochs", f"trained epoch {epoch}, but {planned} are planned"
        elif isinstance(event, schema.TrialEnded):
            is_over = True
            is_early = event.state == "completed" and epoch < planned
            if event.epochs != epoch or is_early != event.ended_early or (is_early and epoch == 0):
                breach = "result-lost", f"is {event.state} after {event.epochs} epochs, but {epoch} of {planned} were trained"
        if breach is not None:
            moments = [training.moment(event) for event in training.rest[max(0, index - BEFORE) : index + 1]]
            seen = [*attempt.submitted, training.start, *moments]
            yield Breach(breach[0], f"{name} {breach[1]}", seen, moments[-1:])
            return


def _configuration(trial: Trial) -> Iterator[Breach]:
    moments = [
        moment
        for attempt in trial.attempts
        for moment in (*attempt.submitted, *(training.start for training in attempt.trainings))
    ]
    changed = [moment for moment in moments if moment.event.configuration != moments[0].event.configuration]
    if changed:
        how = "started" if isinstance(changed[0].event, schema.TrialStarted) else "handed out"
        yield Breach("configuration-changed", f"trial {trial.name} was {how} with another configuration", moments, changed)


def _restored(history: RunHistory, trial: Trial) -> Iterator[Breach]:
    """What an attempt has from a checkpoint comes before what it trains, and is what an attempt before it recorded.

    A process that died may have left the checkpoint of one epoch more; a host that died, of several.
    """
    epochs = (event for training in trial.trainings for event in training.rest if isinstance(event, schema.Epoch))
    if not any(epoch.restored for epoch in epochs):
        return  # most trials: of their epochs no moments are needed
    recorded: dict[int, Moment] = {}
    is_blind = True  # nothing was heard of the attempt before, or it was on another host
    for training in trial.trainings:
        has_trained, most = training.start.event.attempt == 1, math.inf if is_blind else len(recorded) + 1
        is_blind = history.slack_ns(training.start) > 0
        for event in training.rest:
            if not isinstance(event, schema.Epoch):
                continue
            moment, before = training.moment(event), recorded.get(event.epoch)
            is_other = before is not None and before.event.metrics != event.metrics
            if event.restored and (has_trained or is_other or event.epoch > most):
                text = f"trial {trial.name} took epoch {event.epoch} from a checkpoint, but no attempt before had trained it so"
                yield Breach("restored-otherwise", text, [*([before] if before else ()), training.start, moment], [moment])
            has_trained |= not event.restored
            recorded[event.epoch] = moment


def _at_once(history: RunHistory, trial: Trial) -> Iterator[Breach]:
    """An attempt is started once, and a trial's next attempt after the last word of the one before."""
    trainings = list(trial.trainings)
    for before, after in itertools.pairwise(trainings):
        is_same = before.start.event.attempt == after.start.event.attempt
        seen = [before.start, before.last, after.start, after.last]
        if _is_later(history, after.start, before.last):
            yield Breach("two-places", f"trial {trial.name} ran in two places at once", seen, [after.start])
        elif is_same:
            text = f"attempt {after.start.event.attempt} of trial {trial.name} was started twice"
            yield Breach("ran-twice", text, seen, [after.start])


def _slots(history: RunHistory) -> Iterator[Breach]:
    """A slot holds one trial at a time; a pod knows none."""
    places: dict[int, list[Training]] = defaultdict(list)
    for trial in history.trials.values():
        for training in trial.trainings:
            if training.start.process.role != POD:
                places[training.start.event.slot].append(training)
    for slot, trainings in places.items():
        trainings.sort(key=lambda training: history.at(training.start))
        for before, after in itertools.pairwise(trainings):
            names = before.start.event.trial, after.start.event.trial
            if names[0] != names[1] and _is_later(history, after.start, before.last):
                text = f"trials {names[0]} and {names[1]} were on slot {slot} at once"
                yield Breach("shared-slot", text, [before.start, before.last, after.start, after.last], [after.start])


def _devices(history: RunHistory, workers: Workers) -> Iterator[Breach]:
    """A trial sees its slot's device alone, and no more trials see one at once than `per_device`."""
    by_device: dict[str | None, list[Training]] = defaultdict(list)
    for training in (training for trial in history.trials.values() for training in trial.trainings) if workers.devices else ():
        event = training.start.event
        by_device[event.visible].append(training)
        if event.visible != (due := str(workers.device_of(event.slot))):
            text = f"trial {event.trial} saw the devices {event.visible!r}, but its slot {event.slot} has {due}"
            yield Breach(DEVICE_RULES[0], text, [training.start, training.last], [training.start])
    for device, trainings in by_device.items():
        running: list[Training] = []
        for training in sorted(trainings, key=lambda training: history.at(training.start)):
            start = training.start
            running = [*(other for other in running if _is_later(history, start, other.last)), training]
            if len(running) > workers.per_device:
                text = f"{len(running)} trials saw device {device} at once, but per_device is {workers.per_device}"
                yield Breach(DEVICE_RULES[1], text, [moment for each in running for moment in (each.start, each.last)], [start])


def _is_later(history: RunHistory, first: Moment, then: Moment) -> bool:
    """Tell whether `then` was surely after `first`."""
    return history.at(then) - history.at(first) > history.slack_ns(first) + history.slack_ns(then)


def _budget(history: RunHistory, spec: RunSpec, listed: Listed, is_done: bool) -> Iterator[Breach]:
    budget = spec.experiment.budget
    starts = sorted(
        (next(trial.trainings).start for trial in history.trials.values() if any(trial.trainings)),
        key=history.at,
    )
    if len(starts) > budget.trials:
        text = f"{len(starts)} trials were started, but the budget is {budget.trials}"
        yield Breach("budget-over", text, starts[budget.trials - 1 :], starts[budget.trials :])
    expected = budget.trials if listed is None else min(budget.trials, len(listed))
    if is_done and not _is_limited(history, spec) and "sampler_exhausted" not in history.flags and len(history.trials) < expected:
        text = f"{len(history.trials)} trials were handed out, but the budget is {expected}, and the run is done"
        yield Breach("budget-short", text, starts[-3:])
    if budget.epochs_total is not None:
        trainings = [training for trial in history.trials.values() for training in trial.trainings]
        epochs = sum(training.epochs_trained for training in trainings)
        if epochs > budget.epochs_total:
            trainings.sort(key=lambda training: history.at(training.last))
            lasts = [training.last for training in trainings[-3:]]
            text = f"{epochs} epochs were trained, but the budget is {budget.epochs_total}"
            yield Breach("budget-over-epochs", text, lasts, lasts[-1:])


def _is_limited(history: RunHistory, spec: RunSpec) -> bool:
    """Tell whether a run may be done before all its trials ran: its goal ends it, or a budget of seconds or epochs in total."""
    if spec.experiment.objective.stop and history.goals:
        return True
    return spec.experiment.budget.wall_clock_seconds is not None or spec.experiment.budget.epochs_total is not None


def _goal(history: RunHistory, spec: RunSpec) -> Iterator[Breach]:
    """A run ends at its goal where that was asked for, and after an epoch that met it."""
    objective = spec.experiment.objective
    for moment in history.goals:
        name = moment.event.trial
        epochs = list(_epochs_of(history.trials[name])) if name in history.trials else []
        met = [epoch for epoch in epochs if objective.stop and objective.is_met(epoch.event.metrics.get(objective.metric))]
        if not met:
            text = f"the run was ended as trial {name} had met the goal, but it had not"
            yield Breach("goal-not-met", text, [*epochs[-1:], moment], [moment])
        yield from _early(history, "goal-early", moment, met[:1], f"it was known that trial {name} had met the goal", "it had")


def _given(history: RunHistory, spec: RunSpec, listed: Listed, is_done: bool) -> Iterator[Breach]:
    """Each point of a given list (`fixed`, `grid`) is handed out once, equal ones as often as they are given; no other one is."""
    if listed is None:
        return
    digests = [configuration_digest(configuration) for configuration in listed]
    remaining = Counter(digests)
    last: dict[str, Moment] = {}
    firsts = [trial.first for trial in history.trials.values() if trial.first is not None]
    for first in sorted(firsts, key=history.at):
        digest, name = configuration_digest(first.event.configuration), first.event.trial
        remaining[digest] -= 1
        if digest not in last and remaining[digest] < 0:
            text = f"trial {name} has {first.event.configuration}, which is not on the given list"
            yield Breach("not-given", text, [first], [first])
        elif remaining[digest] < 0:
            text = f"trial {name} is a given point once more, after trial {last[digest].event.trial}"
            yield Breach("given-point-twice", text, [last[digest], first], [first])
        last[digest] = first
    never = [configuration for configuration, digest in zip(listed, digests, strict=True) if remaining[digest] > 0]
    if is_done and never and not _is_limited(history, spec):
        text = f"never handed out: {counted(len(never), 'given point')}, first {never[0]}, and the run is done"
        yield Breach("given-point-never", text, firsts[-3:])


def _out_of_order(history: RunHistory) -> Iterator[Breach]:
    """Yield what was before its cause: of attempts, then of what the framework, the coordinator and the test made of them.

    A trial is handed out, started, trained, ended; then it is told, retried, named best, tested. Clocks of one host tell that
    exactly. What another host wrote is not judged: nobody knows by how much its clock is off.
    """
    for trial in history.trials.values():
        before: AttemptHistory | None = None
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
            # What it cannot know before: the last epoch of a trial that completed at once, else its first start.
            trainings = list(named.trainings)
            known = [training.start for training in trainings[:1]]
            if len(trainings) == 1 and named.attempts[-1].outcome == "completed":
                known = list(_epochs_of(named))[-1:] or known
            what = f"a result of trial {event.trial} was reported to the framework"
            yield from _early(history, "told-early", moment, known, what, "it was there")
        elif isinstance(event, schema.StopDecided):
            epochs = [epoch for epoch in _epochs_of(named) if epoch.event.epoch == event.epoch]
            what = f"the stop of trial {event.trial} after epoch {event.epoch} was decided"
            yield from _early(history, "stopped-early", moment, epochs[:1], what, "that epoch was trained")
        else:
            lasts = [training.end or training.last for training in named.trainings]
            yield from _early(history, "best-early", moment, lasts[-1:], f"trial {event.trial} was named best", "it ended")


def _epochs_of(trial: Trial) -> Iterator[Moment]:
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
