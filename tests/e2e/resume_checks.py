"""What must hold after a run was killed and continued, read from the raw events of each execution, not from what joins them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tuneoff.base.identity import configuration_digest
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Epoch, TrialEnded, TrialStarted
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import read_runs
from tuneoff.trust.verify.results import verify

ENDED = ("completed", "pruned")
WRONG_FLAGS = (  # the others speak of the machine
    "attempt_repeated",
    "best_differs",
    "best_value_differs",
    "configuration_changed",
    "configuration_changed_by_resume",
    "finished_trial_repeated",
    "foreign_configurations",
    "foreign_events",
    "left_behind",
    "missing_configurations",
    "missing_lines",
    "orphan_events",
    "over_budget",
    "unknown_best",
)


@dataclass
class Trained:
    """What one execution's own events say: epochs per trial and attempt, configurations, trials that ended by themselves."""

    epochs: Counter[str] = field(default_factory=Counter)
    values: dict[str, list[float | None]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Outcome:
    """What is wrong with a continued run; all empty or zero where nothing is."""

    lost: tuple[str, ...] = ()  # finished before a kill, and not so in the last record
    repeated: tuple[str, ...] = ()  # finished before a kill, and trained again
    budget: str = ""  # how it was not kept
    incumbent: str = ""  # how it is another one
    other: tuple[str, ...] = ()  # not done, not verified, flags

    @property
    def is_right(self) -> bool:
        return self == Outcome()

    def text(self) -> str:
        """Return what is wrong, in one line."""
        parts = [f"lost {list(self.lost)}" if self.lost else "", f"repeated {list(self.repeated)}" if self.repeated else ""]
        return "; ".join(filter(None, (*parts, self.budget, self.incumbent, *self.other))) or "nothing"


def outcome(results: Path, reference: RunRecord) -> Outcome:
    """Compare a folder with one run, killed and continued as often as you like, with a run that was not interrupted."""
    records = sorted(read_runs(results), key=lambda record: (record.started_at or "", record.execution_id))
    last = records[-1]
    spec = last.run_spec()
    metric, planned = spec.experiment.objective.metric, spec.experiment.budget.epochs_per_trial
    folders = [results / "runs" / record.run_id / record.execution_id for record in records]
    executions = [read_events(folder, metric, planned) for folder in folders]
    chain = [one for one, record in zip(executions, records, strict=True) if _is_part(record, last)]
    lost, repeated = set(), set()
    final = {trial.trial: trial for trial in last.trials}
    for place, execution in enumerate(chain[:-1]):
        later = chain[place + 1 :]
        for trial in execution.ended:
            kept = final.get(trial)
            values = [epoch.metrics.get(metric) for epoch in kept.attempts[-1].epochs] if kept is not None else None
            if kept is None or kept.state not in ENDED or values != execution.values[trial]:
                lost.add(trial)
            digest = execution.digests[trial]
            again = [name for one in later for name, found in one.digests.items() if found == digest and one.epochs[name]]
            if again:
                repeated.add(trial)
    return Outcome(
        lost=tuple(sorted(lost)),
        repeated=tuple(sorted(repeated)),
        budget=_budget(last, chain),
        incumbent=_incumbent(last, reference),
        other=tuple(_other(results, last)),
    )


def read_events(folder: Path, metric: str, planned: int) -> Trained:
    """Return what an execution's own events say."""
    found = Trained()
    attempts: dict[str, int] = {}
    for _, event in EventLog(folder / "events"):
        if isinstance(event, TrialStarted):
            attempts[event.trial] = max(event.attempt, attempts.get(event.trial, 0))
            if attempts[event.trial] == event.attempt:
                found.values[event.trial] = []
            found.digests[event.trial] = configuration_digest(event.configuration)
        elif isinstance(event, Epoch):
            found.epochs[event.trial] += 1
            found.values[event.trial].append(event.metrics.get(metric))
            if event.epoch == planned:
                found.ended.add(event.trial)
        elif isinstance(event, TrialEnded) and event.state in ENDED and event.by == "trial":
            found.ended.add(event.trial)
    return found


def _is_part(record: RunRecord, last: RunRecord) -> bool:
    return record is last or (last.continues is not None and record.execution_id in last.continues.executions)


def _budget(last: RunRecord, chain: list[Trained]) -> str:
    """Return how the budget of trials was not kept: as many as planned, each trained to its end in one execution alone."""
    planned = last.run_spec().experiment.budget.trials
    ended = Counter(trial for one in chain for trial in one.ended)
    begun = {trial for one in chain for trial in one.digests}
    if len(begun) != planned or len(ended) != planned or ended.total() != planned:
        return f"{planned} trials were to be trained, but {len(begun)} were begun, and {ended.total()} times one ended"
    return ""


def _incumbent(last: RunRecord, reference: RunRecord) -> str:
    """Return how the best trial is not that of the uninterrupted run; where it is drawn anew, not the best of its own."""
    if last.best is None or last.best.trial is None or last.test is None:
        return "there is no best trial"
    named = next((trial for trial in last.trials if trial.trial == last.best.trial), None)
    objective = last.run_spec().experiment.objective
    values = [trial.value for trial in last.trials if trial.state == "completed" and trial.value is not None]
    best = max(values) if objective.mode == "max" else min(values)
    if named is None or named.value != best:
        return f"the best value is {best}, but the framework names {named.value if named is not None else last.best.trial}"
    if last.run_spec().experiment.sampler.name != "fixed":
        return ""
    same = Counter(trial.digest for trial in last.trials) == Counter(trial.digest for trial in reference.trials)
    expected = next(trial for trial in reference.trials if reference.best and trial.trial == reference.best.trial)
    if not same:
        return "other configurations were trained than in the uninterrupted run"
    if (named.digest, named.value) != (expected.digest, expected.value):
        return f"the best value is {named.value}, without an interruption {expected.value}"
    return ""


def _other(results: Path, last: RunRecord) -> list[str]:
    found = [f"the run is {last.status}: {last.reason}"] if last.status != "done" else []
    flags = [flag for flag in last.flags if flag.name in WRONG_FLAGS]
    found += [f"{flag.name}: {flag.text}" for flag in flags]
    if last.continues is not None and not any(flag.name == "resumed" for flag in last.flags):
        found.append("it is not flagged as resumed")
    return [*found, *(problem.line for problem in verify(results, processes=1).problems)]
