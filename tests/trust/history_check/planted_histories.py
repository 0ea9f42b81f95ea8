"""Defects, planted into sound histories: each changes a run's events in one way that no sound run could."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trust.history_check.planting import Plant, Planting, change, done, key_of, listed, reconfigure, swap_point
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import Failures
from tuneoff.record.events import schema
from tuneoff.record.events.schema import Event, Process

ELSEWHERE = {"x": 0.123456789}
SECOND = 1_000_000_000
PLANTS: dict[str, tuple[str, Plant]] = {}  # by name: the rule that must be found broken, the defect


def plants(rule: str) -> Callable[[Plant], Plant]:
    def noted(plant: Plant) -> Plant:
        PLANTS[plant.__name__] = rule, plant
        return plant

    return noted


@plants("lost")
def a_trial_that_was_handed_out_is_lost(planting: Planting) -> None:
    done(planting)
    _, _, event = planting.one(schema.TrialSubmitted, attempt=1)
    planting.drop(lambda one: getattr(one, "trial", None) != event.trial or one is event)


@plants("two-places")
def a_trial_is_doubled_at_once(planting: Planting) -> None:
    _, process, start = planting.completed()
    planting.copied(start, process, 1000)


@plants("ran-twice")
def a_trial_is_doubled_later(planting: Planting) -> None:
    _, process, start = planting.completed()
    planting.copied(start, process, 10**6 * SECOND)


@plants("handed-out-twice")
def a_configuration_is_handed_out_twice(planting: Planting) -> None:
    _, _, start = planting.completed()
    index, process, event = planting.one(schema.TrialSubmitted, trial=start.trial, attempt=start.attempt)
    planting.pairs.insert(index + 1, (process, change(event, t=event.t + 5)))


@plants("never-handed-out")
def a_trial_was_never_handed_out(planting: Planting) -> None:
    _, _, start = planting.completed()
    planting.drop(lambda one: not (type(one) is schema.TrialSubmitted and key_of(one) == key_of(start)))


@plants("never-started")
def a_start_is_missing(planting: Planting) -> None:
    index, _, _ = planting.completed()
    del planting.pairs[index]


@plants("resurrected")
def a_completed_trial_is_begun_again(planting: Planting) -> None:
    _, process, start = planting.completed()
    planting.clean_of(start)
    _, coordinator, event = planting.one(schema.TrialSubmitted, trial=start.trial, attempt=start.attempt)
    later = 10**6 * SECOND
    planting.pairs.append((coordinator, change(event, attempt=start.attempt + 1, t=event.t + later)))
    planting.copied(start, process, later, attempt=start.attempt + 1)


@plants("ended-twice")
def a_trial_ends_twice(planting: Planting) -> None:
    index, process, end = planting.one(schema.TrialEnded, by="trial")
    planting.pairs.insert(index + 1, (process, change(end, t=end.t + 5)))


@plants("after-its-end")
def a_result_comes_after_the_end(planting: Planting) -> None:
    index, process, end = planting.one(schema.TrialEnded, by="trial")
    late = schema.Epoch(
        seq=0, t=end.t + 5, trial=end.trial, attempt=end.attempt, epoch=end.epochs + 1, metrics={}, train_ns=1, validate_ns=1
    )
    planting.pairs.insert(index + 1, (process, late))


@plants("given-point-twice")
def a_given_point_runs_twice(planting: Planting) -> None:
    swap_point(planting)


@plants("given-point-never")
def a_given_point_never_runs(planting: Planting) -> None:
    done(planting)
    swap_point(planting)


@plants("not-given")
def a_point_was_not_given(planting: Planting) -> None:
    listed(planting)
    _, _, start = planting.completed()
    reconfigure(planting, start.trial, ELSEWHERE)


@plants("budget-short")
def the_budget_is_one_short(planting: Planting) -> None:
    done(planting)
    _, _, start = planting.completed()
    planting.drop(lambda one: getattr(one, "trial", None) != start.trial)


@plants("budget-over")
def the_budget_is_one_over(planting: Planting) -> None:
    done(planting)
    trials = {event.trial for _, event in planting.pairs if isinstance(event, schema.TrialStarted)}
    if len(trials) != planting.run.spec.experiment.budget.trials:  # one of them died before it had started
        raise LookupError
    _, process, start = planting.completed()
    _, coordinator, event = planting.one(schema.TrialSubmitted, trial=start.trial, attempt=start.attempt)
    planting.pairs.append((coordinator, change(event, trial="one-more", attempt=1)))
    planting.copied(start, process, 10**6 * SECOND, trial="one-more", attempt=1)


@plants("budget-over-epochs")
def the_epochs_are_one_over(planting: Planting) -> None:
    epochs = sum(isinstance(event, schema.Epoch) and not event.restored for _, event in planting.pairs)
    experiment = planting.run.spec.experiment
    budget = replace(experiment.budget, epochs_total=epochs - 1)
    planting.run.spec = replace(planting.run.spec, experiment=replace(experiment, budget=budget))


@plants("configuration-changed")
def the_configuration_changes_on_the_way(planting: Planting) -> None:
    index, process, start = planting.completed()
    planting.pairs[index] = process, change(start, configuration=ELSEWHERE, digest=configuration_digest(ELSEWHERE))


@plants("no-end")
def an_attempt_has_no_end_though_the_run_is_done(planting: Planting) -> None:
    done(planting)
    _, _, end = planting.one(schema.TrialEnded, state="pruned")
    ends = (schema.TrialEnded, schema.WorkerDied, schema.TrialKilled)
    planting.drop(lambda one: not (type(one) in ends and key_of(one) == key_of(end)))


@plants("no-end")
def an_attempt_that_trained_has_no_end_though_the_budget_of_epochs_ended_the_run(planting: Planting) -> None:
    an_attempt_has_no_end_though_the_run_is_done(planting)
    experiment = planting.run.spec.experiment
    budget = replace(experiment.budget, epochs_total=10**6)
    planting.run.spec = replace(planting.run.spec, experiment=replace(experiment, budget=budget))


@plants("retried-without-end")
def a_trial_is_retried_whose_end_nobody_saw(planting: Planting) -> None:
    _, _, death = planting.one(schema.WorkerDied)
    if not planting.of(schema.TrialSubmitted, trial=death.trial, attempt=death.attempt + 1):
        raise LookupError
    planting.drop(lambda one: one is not death)


@plants("too-many-retries")
def a_trial_is_retried_beyond_the_limit(planting: Planting) -> None:
    retries = [event.attempt - 1 for _, event in planting.pairs if isinstance(event, schema.TrialSubmitted)]
    if max(retries, default=0) == 0:
        raise LookupError
    experiment = replace(planting.run.spec.experiment, failures=Failures(retries=max(retries) - 1))
    planting.run.spec = replace(planting.run.spec, experiment=experiment)


@plants("retried-own-failure")
def a_failure_of_the_workload_is_retried(planting: Planting) -> None:
    _, _, death = planting.one(schema.WorkerDied)
    if not planting.of(schema.TrialSubmitted, trial=death.trial, attempt=death.attempt + 1):
        raise LookupError
    starts = planting.of(schema.TrialStarted, trial=death.trial, attempt=death.attempt)
    if not starts:
        raise LookupError
    process, start = planting.pairs[starts[0]]
    rest = planting.own(start, process)  # type: ignore[arg-type]
    epochs = sum(isinstance(planting.pairs[index][1], schema.Epoch) for index in rest)
    end = schema.TrialEnded(
        seq=99,
        t=death.t - 1,
        trial=death.trial,
        attempt=death.attempt,
        state="failed",
        epochs=epochs,
        charged="workload",
        cause="x",
    )
    planting.pairs.insert(rest[-1] + 1, (process, end))


@plants("shared-slot")
def two_trials_are_on_one_slot_at_once(planting: Planting) -> None:
    _, process, start = planting.completed()
    if process.role in ("pod", "pod-worker"):
        raise LookupError
    end = planting.pairs[planting.own(start, process)[-1]][1]
    others: list[tuple[int, Any]] = [(i, planting.pairs[i][1]) for i in planting.of(schema.TrialStarted)]
    found = [i for i, other in others if start.t + 1000 < other.t < end.t - 1000 and other.slot != start.slot]
    if not found:
        raise LookupError
    writer, other = planting.pairs[found[0]]
    planting.pairs[found[0]] = writer, change(other, slot=start.slot)


@plants("other-device")
def a_trial_sees_the_device_of_another_slot(planting: Planting) -> None:
    index, process, start = planting.one(schema.TrialStarted)
    if not planting.run.spec.experiment.workers.devices:
        raise LookupError
    planting.pairs[index] = process, change(start, visible="99")


@plants("shared-device")
def two_trials_are_on_one_device_at_once(planting: Planting) -> None:
    if planting.run.spec.experiment.workers.per_device > 1:
        raise LookupError
    _, process, start = planting.completed()
    end = planting.pairs[planting.own(start, process)[-1]][1]
    others: list[tuple[int, Any]] = [(i, planting.pairs[i][1]) for i in planting.of(schema.TrialStarted)]
    found = [i for i, other in others if start.t + 1000 < other.t < end.t - 1000 and other.visible not in (None, start.visible)]
    if not found:
        raise LookupError
    writer, other = planting.pairs[found[0]]
    planting.pairs[found[0]] = writer, change(other, visible=start.visible)


@plants("epochs")
def an_epoch_is_trained_twice(planting: Planting) -> None:
    index, process, epoch = planting.one(schema.Epoch)
    planting.pairs.insert(index + 1, (process, change(epoch, t=epoch.t + 1)))


@plants("restored-otherwise")
def an_epoch_is_restored_that_nobody_trained(planting: Planting) -> None:
    index, process, epoch = planting.one(schema.Epoch, attempt=1)
    planting.pairs[index] = process, change(epoch, restored=True)


@plants("restored-otherwise")
def a_restored_epoch_has_another_result(planting: Planting) -> None:
    index, process, epoch = planting.one(schema.Epoch, restored=True)
    planting.pairs[index] = process, change(epoch, metrics={"loss": 1.0})


@plants("restored-otherwise")
def epochs_are_restored_beyond_what_was_trained(planting: Planting) -> None:
    first: list[Any] = [planting.pairs[index][1] for index in planting.of(schema.TrialStarted, schema.Epoch, attempt=1)]
    begun = Counter(event.trial for event in first if isinstance(event, schema.Epoch))
    begun.update({event.trial: 0 for event in first})
    again: list[tuple[int, Any]] = [(index, planting.pairs[index][1]) for index in planting.of(schema.Epoch, attempt=2)]
    is_local = not any(process.role in ("pod", "pod-worker") for process, _ in planting.pairs)
    found = [epoch.trial for _, epoch in again if epoch.epoch == begun.get(epoch.trial, 99) + 2]
    if not found or not is_local:
        raise LookupError
    for index, epoch in again:
        if epoch.trial == found[0]:
            planting.pairs[index] = planting.pairs[index][0], change(epoch, restored=True)


@plants("restored-otherwise")
def an_epoch_is_restored_after_one_was_trained(planting: Planting) -> None:
    _, _, epoch = planting.one(schema.Epoch, restored=True, epoch=2)
    (index,) = planting.of(schema.Epoch, trial=epoch.trial, attempt=epoch.attempt, epoch=1)
    process, first = planting.pairs[index]
    planting.pairs[index] = process, change(first, restored=False)


@plants("result-lost")
def the_last_result_is_lost(planting: Planting) -> None:
    _, process, start = planting.completed()
    epochs = [index for index in planting.own(start, process) if isinstance(planting.pairs[index][1], schema.Epoch)]
    del planting.pairs[epochs[-1]]


@plants("result-lost")
def an_early_end_does_not_say_so(planting: Planting) -> None:
    index, process, end = planting.one(schema.TrialEnded, ended_early=True, by="trial")
    planting.pairs[index] = process, change(end, ended_early=False)


@plants("result-lost")
def a_pruned_trial_says_that_it_ended_by_itself(planting: Planting) -> None:
    index, process, end = planting.one(schema.TrialEnded, state="pruned", by="trial")
    planting.pairs[index] = process, change(end, ended_early=True)


@plants("result-lost")
def a_trial_completes_without_an_epoch(planting: Planting) -> None:
    index, process, end = planting.one(schema.TrialEnded, state="failed", epochs=0, by="trial")
    planting.pairs[index] = process, change(end, state="completed", ended_early=True, cause=None, charged=None)


@plants("attempt-numbers")
def an_attempt_number_is_skipped(planting: Planting) -> None:
    _, _, retry = planting.one(schema.TrialSubmitted, attempt=2)
    for index, (process, event) in enumerate(planting.pairs):
        if getattr(event, "trial", None) == retry.trial and getattr(event, "attempt", 0) >= 2:
            planting.pairs[index] = process, change(event, attempt=event.attempt + 1)  # type: ignore[attr-defined]


@plants("ran-though-refused")
def a_refused_trial_runs(planting: Planting) -> None:
    _, process, start = planting.completed()
    planting.pairs.append((process, schema.TrialRefused(seq=99, t=start.t - 10_000, trial=start.trial, reason="trials")))


def moved(planting: Planting, writer: Process, cause: Any, kind: type[Event], **fields: Any) -> None:
    """Move an event of this type and fields to a second before another one, which `writer` wrote."""
    index, process, event = planting.one(kind, **fields)
    if process.boot_id != writer.boot_id:  # of another host's clock nothing is known exactly
        raise LookupError
    planting.pairs[index] = process, change(event, t=cause.t - SECOND)


@plants("started-early")
def a_trial_is_started_before_it_is_handed_out(planting: Planting) -> None:
    _, _, start = planting.completed()
    _, coordinator, handed = planting.one(schema.TrialSubmitted, trial=start.trial, attempt=start.attempt)
    moved(planting, coordinator, handed, schema.TrialStarted, trial=start.trial, attempt=start.attempt)


@plants("retried-early")
def a_trial_is_retried_before_its_end(planting: Planting) -> None:
    _, _, retry = planting.one(schema.TrialSubmitted, attempt=2)
    _, writer, death = planting.one(schema.WorkerDied, trial=retry.trial, attempt=1)
    moved(planting, writer, death, schema.TrialSubmitted, trial=retry.trial, attempt=2)


@plants("ended-before-start")
def the_end_of_a_trial_is_seen_before_its_start(planting: Planting) -> None:
    _, _, death = planting.one(schema.WorkerDied)
    _, writer, start = planting.one(schema.TrialStarted, trial=death.trial, attempt=death.attempt)
    moved(planting, writer, start, schema.WorkerDied, trial=death.trial, attempt=death.attempt)


@plants("told-early")
def a_result_is_told_before_it_is_known(planting: Planting) -> None:
    _, writer, epoch = planting.one(schema.Epoch, epoch=planting.run.spec.experiment.budget.epochs_per_trial, attempt=1)
    moved(planting, writer, epoch, schema.Stage, trial=epoch.trial)


@plants("stopped-early")
def a_stop_is_decided_before_its_epoch(planting: Planting) -> None:
    _, _, stop = planting.one(schema.StopDecided)
    _, writer, epoch = planting.one(schema.Epoch, trial=stop.trial, epoch=stop.epoch)
    if len(planting.of(schema.Epoch, trial=stop.trial, epoch=stop.epoch)) > 1:  # by an attempt before it too
        raise LookupError
    moved(planting, writer, epoch, schema.StopDecided, trial=stop.trial)


@plants("goal-not-met")
def a_run_ends_at_a_goal_that_it_has_not(planting: Planting) -> None:
    index, process, epoch = planting.one(schema.Epoch)
    planting.pairs.insert(index + 1, (process, schema.GoalMet(seq=0, t=epoch.t + 1, trial=epoch.trial)))


@plants("goal-early")
def a_goal_is_met_before_its_epoch(planting: Planting) -> None:
    place, process, epoch = planting.one(schema.Epoch, attempt=1)
    planting.clean_of(epoch)
    index, coordinator, submission = planting.one(schema.TrialSubmitted, trial=epoch.trial, attempt=1)
    if process.boot_id != coordinator.boot_id:
        raise LookupError
    experiment = planting.run.spec.experiment
    objective = replace(experiment.objective, goal=0.5, stop=True)
    planting.run.spec = replace(planting.run.spec, experiment=replace(experiment, objective=objective))
    planting.pairs[place] = process, change(epoch, metrics={objective.metric: 0.6})
    planting.pairs.insert(index + 1, (coordinator, schema.GoalMet(seq=0, t=submission.t, trial=epoch.trial)))


@plants("best-early")
def a_trial_is_named_best_before_it_ends(planting: Planting) -> None:
    _, _, best = planting.one(schema.BestKnown)
    _, writer, end = planting.one(schema.TrialEnded, trial=best.trial, by="trial", state="completed")
    moved(planting, writer, end, schema.BestKnown)


@plants("tested-early")
def the_best_is_tested_before_it_is_known(planting: Planting) -> None:
    _, writer, best = planting.one(schema.BestKnown)
    moved(planting, writer, best, schema.Tested)
