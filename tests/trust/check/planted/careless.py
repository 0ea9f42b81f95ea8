"""Defects that careless trainings bring to light: of the process, of shared values, of ends and outputs."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import tuneoff.run.trial.run_trial as core
from trust.check.planted.base import Altered, PlannedTrial
from trust.check.planted.recording import rewrite, whole_events, worker_files
from tuneoff.run.trial.pool import Worker
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff.run.trial.trial_process import trial_process
from tuneoff.trust.check.planned_runs import CHOICES
from tuneoff.trust.check.probe_workload import ProbeEnd, ProbeWithoutState
from tuneoff_adapters.serial import SerialAdapter


class KeepsWhatTrialsChange(Altered):
    """Runs each trial in its process as the one before has left it."""

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        trial_process(worker.context).training.entered = contextlib.nullcontext  # type: ignore[method-assign, assignment]


class HasDaemons(Altered):
    """Runs its trials in daemons of multiprocessing."""

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        multiprocessing.current_process()._config["daemon"] = True  # type: ignore[attr-defined]


class SharesItsChoices(Altered):
    """Hands each trial the very list that it has of a choice."""

    shared: ClassVar[list[int]] = [4, 8]

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        core.own_copy = lambda value: value  # type: ignore[attr-defined]

    @classmethod
    def run(cls, trial: PlannedTrial) -> TrialOutcome:
        if "layers" in trial.configuration:
            trial = trial._replace(configuration={**trial.configuration, "layers": cls.shared})
        return super().run(trial)


class LooksChoicesUp(SerialAdapter):
    """Looks a choice up by its value."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for trial_id, configuration in super().propose():
            if "choice" in configuration:
                configuration = {**configuration, "choice": CHOICES[CHOICES.index(configuration["choice"])]}
            yield trial_id, configuration


class _Altering(Altered):
    """Trains another workload in the place of the probe."""

    workload: ClassVar[type[ProbeWithoutState]]

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        process = trial_process(worker.context)
        if process.context.workload.endswith(":ProbeWithoutState"):
            process.context = replace(process.context, workload=f"{__name__}:{cls.workload.__name__}")


class _EndsWell(ProbeWithoutState):
    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        try:
            return super().train_epoch(epoch)
        except ProbeEnd:
            return {}


class SwallowsAnyEnd(_Altering):
    """Takes a training that raises what is no Exception for one that goes on."""

    workload = _EndsWell


class _Reads(ProbeWithoutState):
    def validate(self) -> Mapping[str, float]:
        return {name: float(value) for name, value in super().validate().items()}


class ReadsNumbers(_Altering):
    """Makes a number of whatever a training gives."""

    workload = _Reads


class LosesWhatFollowsOutput(SerialAdapter):
    """Loses the first epoch of each trial, which follows what the training printed."""

    def undeploy(self) -> None:
        super().undeploy()
        for file in worker_files(self.context.run_dir):
            rewrite(file, [event for event in whole_events(file) if event["type"] != "epoch" or event["epoch"] != 1])


class HidesOutput(Altered):
    """Lets what trainings print go nowhere."""

    @classmethod
    def prepare(cls, worker: Worker) -> None:
        with open(os.devnull, "w") as nowhere:
            for descriptor in (1, 2):
                os.dup2(nowhere.fileno(), descriptor)
