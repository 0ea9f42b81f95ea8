"""Defects in what is written down of trials."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trust.check.planted.base import Altered, PlannedTrial, Task
from tuneoff.base import phases
from tuneoff.base.layout import EVENTS
from tuneoff.platform import Death
from tuneoff.run.trial.pool import Worker
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.serial import SerialAdapter


class OwnEvents(SerialAdapter):
    """Writes an event that no schema knows when a trial is tried again."""

    def _bury(self, death: Death, task: Task | None) -> Task | None:
        again = super()._bury(death, task)
        if again is not None:
            self.context.events.write("trial_retried", trial=again[0])
        return again


class DropsEvents(SerialAdapter):
    """Loses one line of each worker's events."""

    def undeploy(self) -> None:
        super().undeploy()
        for file in worker_files(self.context.run_dir):
            events = whole_events(file)
            lost = next((event["seq"] for event in events if event["type"] == "reported"), None)
            rewrite(file, [event for event in events if event["seq"] != lost])


def worker_files(run_dir: Path) -> list[Path]:
    return sorted((run_dir / EVENTS).glob("worker-*.jsonl"))


def whole_events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def rewrite(file: Path, events: Iterable[Mapping[str, Any]]) -> None:
    part = file.with_suffix(".part")
    part.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    os.replace(part, file)


class AnnouncesTwice(SerialAdapter):
    """Announces what its sampler drew, and announces it when it hands it over."""

    def _dispatch(self, worker: int, again: Task | None = None) -> Task | None:
        task = super()._dispatch(worker, again)
        if task is not None and self.context.spec.experiment.sampler.name == "random":
            self.context.submitted(task.trial_id, task.configuration, attempt=task.attempt)
        return task


class EndsTwice(Altered):
    """Writes the end of trials that has been written."""

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        events = trial_process(trial.context).events
        outcome = trial.run()
        if outcome.state == "completed":
            events.write("trial_ended", trial=trial.trial_id, attempt=trial.attempt, state=outcome.state, epochs=outcome.epochs)
        return outcome


class CountsNoItems(Altered):
    """Leaves out what trainings count."""

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        phases.counted_items = lambda: None
