"""A study on an MLflow server: an experiment of the study's name, in which it and each trial are a run. Imports MLflow."""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # by default a server that is away is asked for minutes
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

import mlflow
from mlflow.optuna.storage import MlflowStorage
from optuna.trial import FrozenTrial, TrialState


class StudyStorage(MlflowStorage):  # type: ignore[misc]
    """MLflow's, with what Optuna's own have: trials in their order, each by its number, and an enqueued one is there at once."""

    def get_all_trials(
        self, study_id: Any, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        trials: list[FrozenTrial] = super().get_all_trials(study_id, deepcopy, states)
        return sorted(trials, key=lambda trial: trial.number)

    def get_trial_id_from_study_id_trial_number(self, study_id: Any, trial_number: int) -> Any:
        for trial in self.get_all_trials(study_id, deepcopy=False):
            if trial.number == trial_number:
                return trial._trial_id
        raise KeyError(trial_number)

    def create_new_trial(self, study_id: Any, template_trial: FrozenTrial | None = None) -> Any:
        trial_id = super().create_new_trial(study_id, template_trial)
        if template_trial is not None:
            self._flush_batch(trial_id, raise_on_error=True)
        return trial_id


def open_study_storage(url: str, name: str) -> StudyStorage:
    """Open the storage of a study, whose experiment is made if there is none; `url`: mlflow+http://HOST:PORT."""
    client, experiment = _experiment(url, name)
    return StudyStorage(client.create_experiment(name) if experiment is None else experiment.experiment_id)


def delete_experiment(url: str, name: str) -> None:
    """Have MLflow mark a study's experiment as deleted; idempotent. `mlflow gc` on the server's machine removes it."""
    client, experiment = _experiment(url, name)
    if experiment is not None and experiment.lifecycle_stage == "active":
        client.delete_experiment(experiment.experiment_id)


def _experiment(url: str, name: str) -> tuple[Any, Any]:
    """Return a client of the server, which MLflow asks from now on, and the experiment of this name; None: there is none."""
    mlflow.set_tracking_uri(url.removeprefix("mlflow+"))
    client = mlflow.MlflowClient()
    return client, client.get_experiment_by_name(name)
