"""A run that was continued: its earlier executions, derived anew and never believed; metrics that hold over all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import read_accounting
from tuneoff.experiment.metric_catalogue import metric
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.slots import EnergyPiece
from tuneoff.measure.spans import AttemptKey
from tuneoff.record.derive import derive
from tuneoff.record.endings import Ruling
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import EARLIER, EarlierExecution
from tuneoff.record.join import attempts_before, shift_ns
from tuneoff.record.layout import SealedFile
from tuneoff.record.metric_value import MetricValue, missing, weakest
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence, on_run_clock, read_samples

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """An earlier execution by itself: its record without metrics, on its own time scale, and its samples."""

    record: RunRecord
    evidence: Evidence


def read_segments(run_dir: Path, spec: RunSpec, executions: Sequence[EarlierExecution]) -> list[Segment]:
    """Derive the records of earlier executions from their files below an execution's folder.

    Raises:
        ResultsError: a file cannot be read, or it is of another execution.
    """
    return [read_segment(run_dir / EARLIER / one.execution_id, spec, one) for one in executions]


def read_segment(folder: Path, spec: RunSpec, execution: EarlierExecution) -> Segment:
    """Derive the record of one earlier execution from its events, with what its supervisor said of its end.

    Raises:
        ResultsError: see read_segments.
    """
    ruling = Ruling(status=execution.status, reason=execution.reason, charged=execution.charged)  # type: ignore[arg-type]
    record = derive(EventLog(folder / EVENTS), spec, ruling=ruling)
    if record.execution_id not in (execution.execution_id, spec.run_id):  # the latter: not one whole event
        raise ResultsError(f"{folder / EVENTS} holds events of {record.execution_id}; restore the files of {folder.name}")
    samples = on_run_clock(read_samples(folder), record)
    return Segment(record=record, evidence=Evidence(samples=samples, accounting=read_accounting(folder)))


def digest_of(sealed: Sequence[SealedFile]) -> str:
    """Return one SHA-256 over the names and digests of all files of earlier executions."""
    lines = sorted(f"{file.name} {file.sha256}\n" for file in sealed if file.name.startswith(f"{EARLIER}/"))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
