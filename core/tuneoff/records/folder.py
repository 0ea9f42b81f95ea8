"""From an execution's folder to its record: derive, measure, seal."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.accounting.store import read_accounting
from tuneoff.events.reader import EventLog
from tuneoff.events.writer import FOLDER
from tuneoff.experiment.spec import RunSpec
from tuneoff.metrics.all import with_metrics
from tuneoff.metrics.evidence import Evidence, on_run_clock
from tuneoff.records.derive import Verdict, derive
from tuneoff.records.model import FlagRecord, RunRecord
from tuneoff.records.seal import seal
from tuneoff.samples.reader import read_samples


def derive_folder(
    run_dir: Path,
    spec: RunSpec,
    *,
    emulated: bool = False,
    verdict: Verdict | None = None,
    versions: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
) -> RunRecord:
    """Derive the record of an execution's folder, with metrics and seals; writes nothing.

    `emulated`: its platform is; else the record is where the adapter found it to be.

    Raises:
        ResultsError: the events cannot be read.
    """
    with _paused_garbage_collector():
        record = _derive_folder(run_dir, spec, verdict, versions, environment)
        return replace(record, emulated=emulated or record.emulated)


def _derive_folder(
    run_dir: Path,
    spec: RunSpec,
    verdict: Verdict | None,
    versions: Mapping[str, Any] | None,
    environment: Mapping[str, Any] | None,
) -> RunRecord:
    log = EventLog(run_dir / FOLDER)
    record = derive(log, spec, verdict=verdict, versions=versions, environment=environment)
    flags = list(record.flags)
    if log.statistics.gaps:
        first = log.statistics.gaps[0]
        text = f"lines are missing, first in {first.file} before line {first.line}"
        flags.append(FlagRecord(name="missing_lines", text=text, count=len(log.statistics.gaps)))
    record = replace(
        record,
        execution_id=run_dir.name,
        flags=tuple(flags),
        torn_lines=log.statistics.torn_lines,
        sealed=seal(run_dir / FOLDER),
    )
    samples = on_run_clock(read_samples(run_dir), record)
    return with_metrics(record, Evidence(samples=samples, accounting=read_accounting(run_dir)))


@contextlib.contextmanager
def _paused_garbage_collector() -> Iterator[None]:
    """Keep Python from searching the growing record for cycles, again and again: there are none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
