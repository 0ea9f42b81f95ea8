"""The budget of trials, epochs and seconds; and stops: those that were decided happen, and no others."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.base.findings import Finding, check, judged
from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, run_check
from tuneoff.trust.check.planned_runs import AT_GOAL, WALL_CLOCK_SECONDS
from tuneoff.trust.check.probe_workload import early_end

READ = ("honest-max", "honest-min", "random-1-workers-1", "random-2-workers-1", "default-sampler")
LATE_SECONDS = 15.0  # the end of the trials that were running, and of their processes
RUN = "scripted"
LATE_EPOCHS = 1  # that may end between the decision of a coordinator that polls and the end of the process


@run_check(
    "budget.trials",
    rule="exactly budget.trials trials: none refused, none missing",
    reason="one trial more is one chance more",
    way_out="propose budget.trials configurations, and set the framework's own bound to that number",
    reads=READ,
)
def _trials(run: FinishedRun) -> Iterator[str]:
    planned = run.experiment.budget.trials
    begun = sum(trial.used_ticket for trial in run.record.trials)
    requested = begun + len(run.record.refusals)
    if requested != planned:
        yield f"{run.name}: {requested} trials were asked for, but the budget is {planned}"


@run_check(
    "budget.epochs",
    rule="a completed trial trained each planned epoch once, no more",
    reason="an epoch is the unit of the budget",
    way_out="run each trial by one call of run_trial, which trains the planned epochs",
    reads=READ,
)
def _epochs(run: FinishedRun) -> Iterator[str]:
    planned = list(range(1, run.experiment.budget.epochs_per_trial + 1))
    for trial in run.record.trials:
        if trial.state == "completed":
            trained = [epoch.epoch for epoch in trial.attempts[-1].epochs]
            if trained != planned:
                yield f"{run.name}: trial {trial.trial} trained epochs {trained}, but {planned} were planned"


@run_check(
    "budget.early-ends",
    rule="a training that ends by itself is completed, with the epochs that it trained",
    reason="trainings stop early by themselves; one that does is neither pruned nor failed, and may be the best",
    way_out="judge a trial by the state of its TrialOutcome, not by the number of its reports",
    reads=("early-ends",),
)
def _early_ends(run: FinishedRun) -> Iterator[str]:
    record = run.record
    for trial in record.trials:
        trained, expected = len(trial.attempts[-1].epochs) if trial.attempts else 0, early_end(trial.digest)
        if trial.state != "completed" or trained != expected:
            yield f"trial {trial.trial} ended by itself after epoch {expected}, but is {trial.state} after {trained}"
    if record.status != "done":
        yield f"the run is {record.status}: {record.reason}"
    elif record.best is not None and record.best.trial != record.best.core_trial:
        yield f"{record.best.trial} was named as the best, but {record.best.core_trial} is"


@check(
    "budget.wall-clock",
    rule="nothing is proposed once the time is over",
    reason="trials after the time is over do not count",
    way_out="propose no trial once TrialBudget(context.trial_context).is_used_up()",
    reads=("wall-clock",),
    has_time_limit=True,
)
def _wall_clock(evidence: AdapterEvidence) -> Finding:
    run = evidence.runs["wall-clock"]
    record, workers = run.record, run.experiment.workers.count
    problems = []
    if len(record.refusals) > workers:  # each worker may ask once at the very moment
        problems.append(f"{len(record.refusals)} trials were proposed after the time was over, to {workers} workers")
    first = min((event.t for event in run.of(schema.TrialStarted)), default=None)
    last = max((event.t for event in run.of(schema.TrialEnded)), default=None)
    if first is None or last is None:
        return judged(["no trial started"])
    seconds = (last - first) / 1e9
    if seconds > WALL_CLOCK_SECONDS + LATE_SECONDS:
        problems.append(
            f"the last trial ended {seconds:.1f} s after the first one's start, but the budget is {WALL_CLOCK_SECONDS:g} s"
        )
    if record.status not in ("done", "failed"):
        problems.append(f"the run is {record.status}: {record.reason}")
    return judged(problems, f"{seconds:.1f} s of {WALL_CLOCK_SECONDS:g} s, {sum(t.used_ticket for t in record.trials)} trials")


@check(
    "budget.goal",
    rule="`objective.stop`: once a trial has met the goal, and not before, the run ends, and no trial begins",
    reason="what follows the goal is the framework's waste",
    way_out="stop by the framework's means that capabilities.stops_at_goal declares, and write goal_met with it; or declare none "
    "and propose no trial once TrialBudget(context.trial_context).is_used_up()",
    reads=AT_GOAL,
    needs_all=False,
)
def _goal(evidence: AdapterEvidence) -> Finding:
    means, problems, counts = evidence.subject.capabilities.stops_at_goal, [], []
    for run in evidence.some(*AT_GOAL):
        record, workers = run.record, run.experiment.workers.count
        used = sum(trial.used_ticket for trial in record.trials)
        counts.append(f"{used} of {run.experiment.budget.trials}")
        goal = next(iter(run.of(schema.GoalMet)), None)
        if goal is None:
            problems.append(f"{run.name}: nobody ended the run at its goal; {used} trials were begun")
            continue
        if goal.by != means:
            problems.append(f"{run.name}: the run was ended by {goal.by or 'core'}, but declared is {means or 'core'}")
        best = next((trial for trial in record.trials if record.best is not None and trial.trial == record.best.trial), None)
        problems += [f"{run.name}: {breach.line}" for breach in run.breaches if breach.rule.startswith("goal-")]
        if record.status != "done" or best is None or not run.experiment.objective.is_met(best.value):
            problems.append(f"{run.name}: it is {record.status}, and its best value {best and best.value} does not meet the goal")
        ended = min((event.t for event in run.of(schema.TrialEnded) if event.trial == goal.trial), default=goal.t)
        begun = [event.t for event in run.of(schema.TrialSubmitted)]
        late, after = sum(ended < t <= goal.t for t in begun), sum(t > goal.t for t in begun)
        if late > workers or after >= workers:  # the other workers may ask at the very moment
            problems.append(f"{run.name}: {late + after} trials were begun after one had met the goal, on {workers} workers")
    return judged(problems, f"{' and '.join(counts)} trials begun")


@run_check(
    "stops.obeyed",
    rule="`scripted`: given trials end at the given epoch",
    reason="epochs after the decision to stop are the framework's waste",
    way_out="return Decision.STOP from report, or end the trial's process, at the decided epoch",
    reads=(RUN,),
    has_time_limit=True,
)
def _obeyed(run: FinishedRun) -> Iterator[str]:
    stops = run.experiment.stops
    decisions = {event.trial: event.t for event in run.of(schema.StopDecided)}
    for trial in run.record.trials:
        last = stops.get(trial.digest)
        if last is None:
            continue
        late = trial.epochs_trained - last
        if trial.trial in decisions:  # how late a coordinator looks is the machine's matter; what follows it is not
            ended = [event.t for event in run.of(schema.Epoch) if event.trial == trial.trial]
            late = max(0, sum(t > decisions[trial.trial] for t in ended) - LATE_EPOCHS)
        if trial.state != "pruned" or late != 0:
            yield f"trial {trial.trial} had to stop after epoch {last}, but it is {trial.state} after {trial.epochs_trained}"


@run_check(
    "stops.only-scripted",
    rule="trials without a given end run to their end",
    reason="under `pruner: scripted` every framework takes the same decisions",
    way_out="switch the framework's own stopping off where another pruner is asked for",
    reads=(RUN,),
)
def _no_others(run: FinishedRun) -> Iterator[str]:
    for trial in run.record.trials:
        if trial.digest not in run.experiment.stops and trial.state != "completed":
            yield f"trial {trial.trial} had no stop, but is {trial.state} after epoch {trial.epochs_trained}"
