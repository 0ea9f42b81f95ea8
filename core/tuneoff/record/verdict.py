"""How a run ended: as its supervisor saw it, else as its events tell; and whether the framework did what the experiment fixed."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.sampling import listed_configurations
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.endings import NEVER_STARTED
from tuneoff.record.events.schema import Charged
from tuneoff.record.run_record import BestRecord, FlagRecord, RunStatus, StepRecord, TestRecord, TrialRecord

FOREIGN = "foreign_configurations"
MISSING = "missing_configurations"
NOT_STOPPED = "scripted_stop_missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a run ended, as its supervisor saw it; a run's events alone cannot tell a time limit from a kill."""

    status: RunStatus
    reason: str | None = None
    charged: Charged | None = None


KILLED = Verdict(status="interrupted", reason="its tuneoff command was killed", charged="user")
_UNWRITTEN = {
    errno.ENOSPC: "the disk was full",
    errno.EDQUOT: "the quota was used up",
    errno.EROFS: "the disk was read-only",
    errno.EACCES: "it had no right to",
}
UNWRITABLE = {  # by errno
    number: Verdict(status="interrupted", reason=f"its results folder could not be written: {text}", charged="infrastructure")
    for number, text in _UNWRITTEN.items()
}
IN_NO_EVENT = {verdict.reason: verdict for verdict in (KILLED, *UNWRITABLE.values())}  # by reason: nobody could write one


def verdict_of(
    steps: Sequence[StepRecord],
    trials: Sequence[TrialRecord],
    best: BestRecord | None,
    test: TestRecord | None,
    promises: Sequence[FlagRecord],
) -> Verdict:
    """Return how a run ended by its events: done, failed (a step failed, no trial completed, no test) or interrupted."""
    failed = next((step for step in steps if step.error is not None), None)
    if failed is not None and failed.error == "interrupted":
        return Verdict(status="interrupted", reason=f"interrupted in step {failed.step}", charged=failed.charged)
    is_past_collect = failed is None or failed.step in ("test", "metrics", "undeploy")  # a failed test follows from a wrong best
    if is_past_collect and best is not None and best.trial is not None and all(trial.trial != best.trial for trial in trials):
        return Verdict(status="failed", reason=_unknown_best(best.trial, trials), charged="framework")
    if failed is not None:
        undeploy = next((step for step in steps if step.step == "undeploy" and step.error and step is not failed), None)
        besides = "" if undeploy is None else f"; then {undeploy.error}"
        return Verdict(status="failed", reason=f"step {failed.step} failed: {failed.error}{besides}", charged=failed.charged)
    if not any(step.step == "undeploy" and step.ended_ns is not None for step in steps):
        return Verdict(status="interrupted", reason="the coordinator ended before un-deploy", charged="infrastructure")
    if not any(trial.state == "completed" for trial in trials):
        charges = [trial.charged for trial in trials if trial.charged is not None]
        most = Counter(sorted(charges)).most_common(1)
        # a framework that ran nothing, or stopped everything, would do so again
        is_its_own = any(trial.state == "pruned" for trial in trials) or all(trial.cause == NEVER_STARTED for trial in trials)
        charged: Charged = most[0][0] if most else "framework" if is_its_own else "infrastructure"
        return Verdict(status="failed", reason=f"no trial completed{_most_frequent_cause(trials)}", charged=charged)
    if best is None or best.trial is None:
        return Verdict(status="failed", reason="the framework named no best trial", charged="framework")
    foreign = next((flag for flag in promises if flag.name == FOREIGN), None)
    if foreign is not None:
        return Verdict(status="failed", reason=foreign.text, charged="framework")
    if test is None:
        return Verdict(status="failed", reason="the best trial was not tested", charged="infrastructure")
    return Verdict(status="done")


def _unknown_best(name: str, trials: Sequence[TrialRecord]) -> str:
    known = [trial.trial for trial in trials]
    text = ", ".join(known) if len(known) <= 3 else f"{known[0]} ... {known[-1]}"
    return f"collect_results named trial {name!r} as the best, which was never submitted; submitted: {text or 'none'}"


def _most_frequent_cause(trials: Sequence[TrialRecord]) -> str:
    """Return `: 3 of 3 failed: CAUSE`, or nothing where no trial failed; of causes that are as frequent, the first one."""
    causes = Counter(trial.cause for trial in trials if trial.state in ("failed", "timed_out") and trial.cause)
    if not causes:
        return ""
    cause, count = causes.most_common(1)[0]
    every = "" if count == causes.total() else f", {count} of them"
    return f": {causes.total()} of {len(trials)} failed{every}: {cause}"


def promise_flags(spec: RunSpec, trials: Sequence[TrialRecord]) -> list[FlagRecord]:
    """Return flags for configurations beyond the given list (`fixed`, `grid`), for missing ones, and for missed stops.

    Foreign configurations fail the run: what it measured is not what was asked for. Missing ones may be the budget's doing.
    """
    return [*_configurations(spec, trials), *_stops(spec, trials)]


def _configurations(spec: RunSpec, trials: Sequence[TrialRecord]) -> list[FlagRecord]:
    listed = listed_configurations(spec)
    if listed is None:
        return []
    given = Counter(configuration_digest(configuration) for configuration in listed)
    trained = Counter(trial.digest for trial in trials if trial.used_ticket)
    flags = []
    foreign, missing = (trained - given).total(), (given - trained).total()
    if foreign:
        text = f"{foreign} trials trained configurations beyond the given list of sampler {spec.experiment.sampler.name!r}"
        flags.append(FlagRecord(name=FOREIGN, text=text, count=foreign))
    if missing:
        text = f"{missing} of {given.total()} given configurations were not trained"
        flags.append(FlagRecord(name=MISSING, text=text, count=missing))
    return flags


def _stops(spec: RunSpec, trials: Sequence[TrialRecord]) -> list[FlagRecord]:
    stops, epochs = spec.experiment.stops, spec.experiment.budget.epochs_per_trial
    if spec.experiment.pruner.name != "scripted":
        return []
    missed = [trial.trial for trial in trials if trial.state == "completed" and stops.get(trial.digest, epochs) < epochs]
    if not missed:
        return []
    text = f"trials that had to stop ran to their end: {', '.join(missed[:5])}"
    return [FlagRecord(name=NOT_STOPPED, text=text, count=len(missed))]
