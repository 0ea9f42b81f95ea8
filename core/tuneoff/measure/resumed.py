"""Metrics of a run that was continued: what counts trials holds over all its executions, what times the whole has no meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuneoff.experiment.metric_names import metric
from tuneoff.measure.attribution.account import AttemptKey, EnergyAccount, EnergyPiece
from tuneoff.record.join import attempts_before, shift_ns
from tuneoff.record.metric_value import MetricValue, missing, weakest
from tuneoff.record.run_record import RunRecord

RESUMED = "resumed: the run was interrupted and continued, so its whole has no time of its own"


def without_times(values: Mapping[str, MetricValue]) -> dict[str, MetricValue]:
    """Return the metrics with null for all that rests on the time, the services or the machine of a run as a whole.

    What remains are counts, qualities, and sums over attempts: each attempt was timed and metered in its own execution.
    """
    return {
        name: value
        if value.value is None or metric(name).survives != "no"
        else missing(value.unit, RESUMED, kind=value.kind, source=value.source)
        for name, value in values.items()
    }


def joined_account(run: RunRecord, account: EnergyAccount, earlier: Sequence[tuple[RunRecord, EnergyAccount]]) -> EnergyAccount:
    """Return the energy of the attempts of all executions; `run`: the last one by itself, `account`: its own.

    Of the job besides the trials nothing is told: a killed execution's services were metered to an end that nobody saw.
    """
    accounts = [*(one for _, one in earlier), account]
    attempts: dict[AttemptKey, tuple[EnergyPiece, ...]] = {}
    before: list[RunRecord] = []
    for record, one in (*earlier, (run, account)):
        offsets, shift = attempts_before(before), shift_ns(record.clock, run.clock)
        for (trial, index), pieces in one.attempts.items():
            moved = tuple(EnergyPiece(piece.start_ns + shift, piece.end_ns + shift, piece.joules) for piece in pieces)
            attempts[trial, index + offsets.get(trial, 0)] = moved
        before.append(record)
    reasons = dict.fromkeys(("overhead", "idle", "outside", "coordinator", "services", "test"), RESUMED)
    unknown = next((one.reasons["trials"] for one in accounts if "trials" in one.reasons), None)
    coverages = [one.coverage for one in accounts if one.coverage is not None]
    return EnergyAccount(
        kind=weakest(*(one.kind for one in accounts)),
        source="; ".join(dict.fromkeys(one.source for one in accounts if one.source)),
        reason=next((one.reason for one in accounts if one.reason is not None), None),
        n_samples=sum(one.n_samples for one in accounts),
        coverage=min(coverages, default=None),
        attempts=attempts,
        reasons={**reasons, **({"trials": unknown} if unknown is not None else {})},
        job_reason=RESUMED,
        use_kind="estimated" if any(one.use_kind == "estimated" for one in accounts) else "derived",
    )


def is_counted(name: str) -> bool:
    """Tell whether a metric is a count or a quality: judged of a continued run too, and between machines.

    Sums over attempts stand in a continued run's record, but no verdict rests on them: what the kill cost is among them.
    """
    return metric(name).survives == "counted"
