"""Evidence made by hand: records without processes, as small as a check needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.adapter import Capabilities
from tuneoff.base.findings import Finding
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import ExperimentSpec, RunSpec, run_spec_to_json
from tuneoff.record.events import schema
from tuneoff.record.events.schema import Event, Process
from tuneoff.record.run_record import AttemptRecord, BestRecord, EpochRecord, RunRecord, TrialRecord
from tuneoff.trust.check import planned_runs as experiments
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.evidence import AdapterEvidence, FinishedRun, Refusals, Subject

SUBJECT = Subject(name="plain", target="m:C", platform="local", capabilities=Capabilities(framework="none"))
PROCESS = Process(
    seq=0,
    t=0,
    version=schema.SCHEMA_VERSION,
    role="coordinator",
    pid=1,
    host="h",
    boot_id="b",
    execution_id="r0-a",
    anchor_monotonic_ns=0,
    anchor_wall_ns=0,
    anchor_width_ns=0,
    process_started_ns=0,
)


def trial(number: int, value: float | None, state: Any = "completed", **fields: Any) -> TrialRecord:
    """Return a trial with one attempt of three epochs; `act` and `level` make its configuration."""
    configuration = {"level": fields.pop("level", value), "act": fields.pop("act", "sound")}
    attempts = fields.pop("attempts", None) or (attempt(1, state, start=number),)
    defaults: dict[str, Any] = {
        "value_epoch": 2 if value is not None else None,
        "cause": "broken" if state == "failed" else None,
    }
    return TrialRecord(
        trial=f"t{number:05d}",
        configuration=configuration,
        digest=configuration_digest(configuration),
        state=state,
        value=value,
        attempts=attempts,
        **{**defaults, **fields},
    )


def attempt(
    number: int, state: Any = "completed", *, start: int = 0, epochs: int = experiments.EPOCHS, **fields: Any
) -> AttemptRecord:
    defaults: dict[str, Any] = {"slot": 0, "started_ns": start * 10, "ended_ns": start * 10 + 9, "threads": 1}
    return AttemptRecord(
        attempt=number,
        state=state,
        epochs=tuple(
            EpochRecord(epoch=epoch, ended_ns=start * 10 + epoch, train_ns=1, validate_ns=1, metrics={})
            for epoch in range(1, epochs + 1)
        ),
        **{**defaults, **fields},
    )


def record(
    spec: ExperimentSpec, trials: Sequence[TrialRecord], best: str | None = None, value: float | None = None, **fields: Any
) -> RunRecord:
    run = RunSpec(experiment=spec, adapter="plain", adapter_target="m:C")
    known = next((item.value for item in trials if item.trial == best), None)
    named = BestRecord(trial=best, framework_value=known if value is None else value, known_ns=1, core_trial=best)
    defaults: dict[str, Any] = {"status": "done", "best": named, "environment": {"limits": {"memory": "none", "cpus": "none"}}}
    return RunRecord(
        run_id=run.run_id,
        execution_id="e",
        specification=run_spec_to_json(run),
        trials=tuple(trials),
        **{**defaults, **fields},
    )


class MadeByHand(FinishedRun):
    """A run whose events and notes are given."""

    given_events: Sequence[Event]
    given_notes: Sequence[Mapping[str, Any]]

    @property
    def events(self) -> tuple[tuple[Process, Event], ...]:
        return tuple((PROCESS, event) for event in self.given_events)

    @property
    def notes(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.given_notes)


def made(
    name: str,
    trials: Sequence[TrialRecord] = (),
    best: str | None = None,
    *,
    spec: ExperimentSpec | None = None,
    mode: Any = "max",
    events: Sequence[Event] = (),
    notes: Sequence[Mapping[str, Any]] = (),
    record_fields: Mapping[str, Any] | None = None,
    **fields: Any,
) -> FinishedRun:
    """Return a run of three epochs per trial with these trials."""
    spec = spec or experiments.listed(experiments.sound(max(1, len(trials))))
    spec = replace(spec, objective=replace(spec.objective, mode=mode))
    run = MadeByHand(
        name=name,
        experiment=spec,
        folder=Path("/nonexistent"),
        notes_folder=Path("/nonexistent"),
        stored=record(spec, trials, best, **(record_fields or {})),
        **fields,
    )
    object.__setattr__(run, "given_events", events)
    object.__setattr__(run, "given_notes", notes)
    return run


def evidence(*runs: FinishedRun, refusals: Refusals | None = None, **fields: Any) -> AdapterEvidence:
    return AdapterEvidence(subject=SUBJECT, runs={run.name: run for run in runs}, refusals=refusals, **fields)


def finding(check_id: str, given: AdapterEvidence) -> Finding:
    """Return what one check says."""
    (check,) = [check for check in CHECKS if check.id == check_id]
    return check.judge(given)
