"""From an execution's folder to its record: derive, measure, seal."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuneoff.experiment.accounting.declared import read_accounting
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.declared_experiment import with_declared
from tuneoff.measure.evidence import Evidence, on_run_clock
from tuneoff.measure.resumed import Segment, digest_of, joined_account, read_segments
from tuneoff.measure.with_metrics import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.endings import Verdict
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.writer import FOLDER
from tuneoff.record.history import read_history
from tuneoff.record.join import own_trials
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.record.samples.reader import read_samples, sample_flags
from tuneoff.record.store import seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A record with its metrics and seals, and what these metrics rest on."""

    record: RunRecord
    evidence: Evidence
    account: EnergyAccount
    earlier: tuple[RunRecord, ...] = ()  # of the executions that it continues, each by itself


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
    log = EventLog(run_dir / FOLDER)
    return derive_log(run_dir, log, spec, emulated=emulated, verdict=verdict, versions=versions, environment=environment).record


def derive_log(
    run_dir: Path,
    log: EventLog,
    spec: RunSpec,
    *,
    emulated: bool = False,
    verdict: Verdict | None = None,
    versions: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
) -> Derived:
    """Do as `derive_folder` with the execution's event log, and return what the metrics rest on too."""
    with _paused_garbage_collector():
        segments = read_segments(run_dir, spec, read_history(run_dir).executions)
        earlier = tuple(segment.record for segment in segments)
        record = derive(log, spec, verdict=verdict, versions=versions, environment=environment, earlier=earlier)
        flags = list(record.flags)
        if log.statistics.gaps:
            first = log.statistics.gaps[0]
            text = f"lines are missing, first in {first.file} before line {first.line}"
            flags.append(FlagRecord(name="missing_lines", text=text, count=len(log.statistics.gaps)))
        record = replace(
            record,
            execution_id=run_dir.name,
            emulated=emulated or record.emulated,
            flags=tuple(flags),
            torn_lines=log.statistics.torn_lines,
            sealed=seal(run_dir),
        )
        samples = on_run_clock(read_samples(run_dir), record)
        record = replace(record, flags=(*record.flags, *sample_flags(samples)))
        evidence = Evidence(samples=samples, accounting=read_accounting(run_dir))
        if record.continues is not None:
            record = replace(record, continues=replace(record.continues, digest=digest_of(record.sealed)))
        account = _account(record, evidence, segments)
        record = with_declared(with_metrics(record, evidence, account), evidence)
        return Derived(record=record, evidence=evidence, account=account, earlier=earlier)


def _account(record: RunRecord, evidence: Evidence, segments: Sequence[Segment]) -> EnergyAccount:
    """Return who used the energy: each execution is attributed by itself, from its own samples."""
    if not segments:
        return energy_account(record, evidence)
    earlier = [segment.record for segment in segments]
    alone = replace(record, trials=own_trials(record.trials, earlier))
    accounts = [energy_account(segment.record, segment.evidence) for segment in segments]
    return joined_account(alone, energy_account(alone, evidence), list(zip(earlier, accounts, strict=True)))


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
