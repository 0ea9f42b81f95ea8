"""Stops: those that were decided happen, and no others."""

from __future__ import annotations

from collections.abc import Iterator

from tuneoff.record.events import schema
from tuneoff.trust.check.evidence import AdapterEvidence, Made
from tuneoff.trust.check.model import Finding, check, judged, of_runs

RUN = "scripted"
LATE_EPOCHS = 1  # that may end between the decision of a coordinator that polls and the end of the process


@check(
    "stops.obeyed",
    rule="`scripted`: given trials end at the given epoch",
    reason="epochs after the decision to stop are the framework's waste",
    way_out="return Decision.STOP from report, or end the trial's process, at the decided epoch",
    reads=(RUN,),
    has_time_limit=True,
)
@of_runs(RUN)
def _obeyed(made: Made) -> Iterator[str]:
    stops = made.experiment.stops
    decisions = {event.trial: event.t for event in made.of(schema.StopDecided)}
    for trial in made.record.trials:
        last = stops.get(trial.digest)
        if last is None:
            continue
        late = trial.epochs_trained - last
        if trial.trial in decisions:  # how late a coordinator looks is the machine's matter; what follows it is not
            ended = [event.t for event in made.of(schema.Epoch) if event.trial == trial.trial]
            late = max(0, sum(t > decisions[trial.trial] for t in ended) - LATE_EPOCHS)
        if trial.state != "pruned" or late != 0:
            yield f"trial {trial.trial} had to stop after epoch {last}, but it is {trial.state} after {trial.epochs_trained}"


@check(
    "stops.only-scripted",
    rule="trials without a given end run to their end",
    reason="under `pruner: scripted` every framework takes the same decisions",
    way_out="switch the framework's own stopping off where another pruner is asked for",
    reads=(RUN,),
)
def _no_others(evidence: AdapterEvidence) -> Finding:
    made = evidence.runs[RUN]
    return judged(
        f"trial {trial.trial} had no stop, but is {trial.state} after epoch {trial.epochs_trained}"
        for trial in made.record.trials
        if trial.digest not in made.experiment.stops and trial.state != "completed"
    )


CHECKS = (_obeyed, _no_others)
