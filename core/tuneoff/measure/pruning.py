"""What pruning saved: the epochs that stopped trials did not run, each at the trial's own mean. An estimate by its nature."""

from __future__ import annotations

from tuneoff.measure.attribution.account import AttemptKey, EnergyAccount, joules
from tuneoff.measure.evidence import Evidence
from tuneoff.measure.segments import Interval, busy, length
from tuneoff.record.metric_value import MetricValue, known, missing
from tuneoff.record.run_record import AttemptRecord, RunRecord

JOULES_PER_KWH = 3.6e6
SOURCE = "epochs not run times the trial's own mean epoch"
NO_EPOCH = "a trial was stopped before its first epoch, so its mean epoch is not known"


def pruning_metrics(run: RunRecord, evidence: Evidence, account: EnergyAccount) -> dict[str, MetricValue]:
    """Return the epochs (count), busy time (ms) and energy (kWh) that pruning saved. A pure function.

    Per pruned trial: the planned epochs that its last attempt did not run, times the mean busy time or energy of those that
    it did, its loading left out. Nothing was saved where nothing was pruned.
    """
    planned = run.run_spec().experiment.budget.epochs_per_trial
    pruned = [(trial.trial, trial.attempts) for trial in run.trials if trial.state == "pruned" and trial.used_ticket]
    lasts: list[tuple[AttemptKey, AttemptRecord]] = [((name, len(tried) - 1), tried[-1]) for name, tried in pruned]
    saved = [max(0, planned - len(attempt.epochs)) for _, attempt in lasts]
    values = {"pruning.saved_epochs": known(sum(saved), "count", kind="estimated", source=SOURCE, n_samples=len(lasts))}
    spans = [_epochs(attempt) for _, attempt in lasts]
    known_spans = [span for span in spans if span is not None]
    if len(known_spans) < len(spans):
        values["pruning.saved_time"] = missing("ms", NO_EPOCH, kind="estimated", source=SOURCE)
        values["pruning.saved_energy"] = missing("kWh", account.reason or NO_EPOCH, kind="estimated", source=SOURCE)
        return values
    time_ns = energy = 0.0
    reason = account.reason
    for (key, attempt), span, count in zip(lasts, known_spans, saved, strict=True):
        time_ns += count * length(busy(attempt), span) / len(attempt.epochs)
        if key in account.attempts:
            energy += count * joules(account.attempts[key], span) / len(attempt.epochs)
        else:
            reason = reason or account.reasons.get("trials", "the energy of an attempt is not known")
    values["pruning.saved_time"] = known(time_ns / 1e6, "ms", kind="estimated", source=SOURCE, n_samples=len(lasts))
    source = f"{SOURCE}; {account.source}" if account.source else SOURCE
    values["pruning.saved_energy"] = (
        known(energy / JOULES_PER_KWH, "kWh", kind="estimated", source=source, n_samples=len(lasts), coverage=account.coverage)
        if reason is None
        else missing("kWh", reason, kind="estimated", source=source)
    )
    return values


def _epochs(attempt: AttemptRecord) -> Interval | None:
    """Return from when to when an attempt ran its epochs, None if it ran none."""
    if not attempt.epochs:
        return None
    begin = attempt.loaded_ns if attempt.loaded_ns is not None else attempt.started_ns
    return begin or 0, attempt.epochs[-1].ended_ns
