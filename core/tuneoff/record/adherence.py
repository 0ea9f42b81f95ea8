"""Did the framework do what the experiment fixed: the given configurations, the scripted stops?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.sampling import listed_configurations
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.run_record import FlagRecord, TrialRecord

FOREIGN = "foreign_configurations"
MISSING = "missing_configurations"
NOT_STOPPED = "scripted_stop_missed"


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
