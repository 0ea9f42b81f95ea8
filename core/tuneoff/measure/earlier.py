"""The earlier executions that an execution's folder holds under `earlier/`: derived anew, never believed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.store import read_accounting
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.evidence import Evidence, on_run_clock
from tuneoff.record.derive import derive
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import EARLIER, EarlierExecution
from tuneoff.record.run_record import RunRecord, SealedFile
from tuneoff.record.samples.reader import read_samples
from tuneoff.record.verdict import Verdict


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
    verdict = Verdict(status=execution.status, reason=execution.reason, charged=execution.charged)  # type: ignore[arg-type]
    record = derive(EventLog(folder / EVENTS), spec, verdict=verdict)
    if record.execution_id not in (execution.execution_id, spec.run_id):  # the latter: not one whole event
        raise ResultsError(f"{folder / EVENTS} holds events of {record.execution_id}; restore the files of {folder.name}")
    samples = on_run_clock(read_samples(folder), record)
    return Segment(record=record, evidence=Evidence(samples=samples, accounting=read_accounting(folder)))


def digest_of(sealed: Sequence[SealedFile]) -> str:
    """Return one SHA-256 over the names and digests of all files of earlier executions."""
    lines = sorted(f"{file.name} {file.sha256}\n" for file in sealed if file.name.startswith(f"{EARLIER}/"))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
