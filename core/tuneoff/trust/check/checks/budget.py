"""The budget of trials, epochs and seconds."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterEvidence, Made
from tuneoff.trust.check.model import Check, Finding, judged
from tuneoff.trust.check.specs import WALL_CLOCK_SECONDS

READ = ("honest-max", "honest-min", "random-1-workers-1", "random-2-workers-1")
LATE_SECONDS = 15.0  # the end of the trials that were running, and of their processes


def _trials(evidence: AdapterEvidence) -> Finding:
    return judged(problem for made in evidence.some(*READ) for problem in _trial_problems(made))


def _trial_problems(made: Made) -> Iterator[str]:
    planned = made.experiment.budget.trials
    begun = sum(trial.used_ticket for trial in made.record.trials)
    asked = begun + len(made.record.refusals)
    if asked != planned:
        yield f"{made.name}: {asked} trials were asked for, but the budget is {planned}"


def _epochs(evidence: AdapterEvidence) -> Finding:
    return judged(problem for made in evidence.some(*READ) for problem in _epoch_problems(made))


def _epoch_problems(made: Made) -> Iterator[str]:
    planned = list(range(1, made.experiment.budget.epochs_per_trial + 1))
    for trial in made.record.trials:
        if trial.state == "completed":
            trained = [epoch.epoch for epoch in trial.attempts[-1].epochs]
            if trained != planned:
                yield f"{made.name}: trial {trial.trial} trained epochs {trained}, but {planned} were planned"


def _wall_clock(evidence: AdapterEvidence) -> Finding:
    made = evidence.runs["wall-clock"]
    record, workers = made.record, made.experiment.workers.count
    problems = []
    if len(record.refusals) > workers:  # each worker may ask once at the very moment
        problems.append(f"{len(record.refusals)} trials were proposed after the time was over, to {workers} workers")
    first = min((event.t for event in made.of(schema.TrialStarted)), default=None)
    last = max((event.t for event in made.of(schema.TrialEnded)), default=None)
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


CHECKS = (
    Check(
        id="budget.trials",
        reason="a framework that runs one trial more had one chance more",
        way_out="propose budget.trials configurations, and set the framework's own bound to that number",
        reads=READ,
        judge=_trials,
    ),
    Check(
        id="budget.epochs",
        reason="an epoch is the unit of the budget",
        way_out="run each trial by one call of run_trial, which trains the planned epochs",
        reads=READ,
        judge=_epochs,
    ),
    Check(
        id="budget.wall-clock",
        reason="a framework that goes on after the time is over is asked for nothing that counts",
        way_out="propose no trial once TrialBudget(context.trial_context).is_used_up()",
        reads=("wall-clock",),
        judge=_wall_clock,
        has_time_limit=True,
    ),
)
