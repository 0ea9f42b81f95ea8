"""Configurations that the trials of real runs received: for an adapter that cannot draw without running trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.experiment.accounting.declared import NO_ACCOUNTING
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import TrialStarted, TrialSubmitted
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.results_folder import RunEnd
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.supervisor.guardian import Announce, temporary_folder
from tuneoff.run.supervisor.leftovers import left_outside
from tuneoff.trust.space_test.sample import Sample

MOST_TRIALS, SEEDS = 200, 2  # of all seeds together: a run costs a framework's start, and each trial its dispatch


def receive(
    run: PlannedRun,
    plan: Plan,
    draws: int,
    seed: int,
    why: str,
    seeds: int = SEEDS,
    announce: Announce = lambda folder: None,
) -> Sample:
    """Return what the trials of supervised runs received; `why` the adapter cannot draw. Nothing of the runs is left.

    Raises:
        KeyboardInterrupt: a run was interrupted.
    """
    trials = min(draws, MOST_TRIALS) // seeds
    note = f"configurations that {trials * seeds} trials of {seeds} real runs received, because the adapter cannot draw"
    by_seed: dict[int, list[dict[str, Any]]] = {}
    problems: list[str] = []
    changed = 0
    for number in range(seed, seed + seeds):
        with temporary_folder(announce) as folder:
            end = _execute(run, plan, trials, number, folder / "results")
            by_seed[number], differing = _read(end)
            changed += differing
            problems += _problems(end, number)
    return Sample(
        source="runs",
        note=f"{note}{f': {why}' if why else ''}",
        by_seed=by_seed,
        changed=changed,
        failure="; ".join(problems) or None,
    )


def _execute(run: PlannedRun, plan: Plan, trials: int, seed: int, results: Path) -> RunEnd:
    experiment = run.spec.experiment
    spec = replace(run.spec, seed=seed, experiment=replace(experiment, budget=replace(experiment.budget, trials=trials)))
    only = replace(run, run_id=spec.run_id, spec=spec)
    alone = replace(plan, runs=(only,), power=PowerSettings(meter="none"), accounting=NO_ACCOUNTING)
    (end,) = execute(PlanRequest(plan=alone, results=results))
    if end.status in ("interrupted", "planned"):
        raise KeyboardInterrupt
    return end


def _read(end: RunEnd) -> tuple[list[dict[str, Any]], int]:
    """Return the configurations of the first attempts that began, and how many differ from what was handed over."""
    if end.folder is None:
        return [], 0
    submitted: dict[str, dict[str, Any]] = {}
    started: dict[str, dict[str, Any]] = {}
    for _, event in EventLog(end.folder / EVENTS):
        if isinstance(event, TrialSubmitted):
            submitted.setdefault(event.trial, event.configuration)
        elif isinstance(event, TrialStarted):
            started.setdefault(event.trial, event.configuration)
    differing = sum(trial in submitted and submitted[trial] != configuration for trial, configuration in started.items())
    return list(started.values()), differing


def _problems(end: RunEnd, seed: int) -> list[str]:
    problems = [] if end.status == "done" else [f"the run with seed {seed} ended as {end.status}: {end.reason}"]
    return problems + ([] if end.folder is None else left_outside(end.folder))
