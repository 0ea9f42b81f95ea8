"""The trial controller: makes the Job of each Trial, and turns the Job's end and the metrics into the Trial's status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from katib_emulation.admission.rules import TRIAL_NAME
from katib_emulation.controllers.view import (
    EXPERIMENT_LABEL,
    ReconcileError,
    add_finalizer,
    owned_by,
    place_of,
    remove_finalizer,
)
from katib_emulation.kinds import JOBS, TRIALS
from katib_emulation.objects import (
    Key,
    Object,
    copied,
    finalizers,
    find_condition,
    has_condition,
    is_deleting,
    now,
    set_condition,
    stop_running,
)
from katib_emulation.observations import Observations, is_available, observe
from katib_emulation.statuses import ApiError
from katib_emulation.storage.store import Store


def new_trial(experiment: Mapping[str, Any], suggestion: Mapping[str, Any]) -> Object:
    """Return the Trial for one entry of a Suggestion's status.

    Raises:
        ReconcileError: the template cannot be filled.
    """
    spec, template = experiment["spec"], experiment["spec"]["trialTemplate"]
    name, namespace = suggestion["name"], experiment["metadata"]["namespace"]
    assignments = suggestion.get("parameterAssignments", [])
    trial_spec = {
        "objective": spec["objective"],
        "parameterAssignments": assignments,
        "earlyStoppingRules": suggestion.get("earlyStoppingRules") if "earlyStopping" in spec else None,
        "runSpec": _run_spec(template, name, namespace, {given["name"]: given["value"] for given in assignments}),
        "retainRun": template.get("retain"),
        "metricsCollector": spec["metricsCollectorSpec"],
        "primaryContainerName": template.get("primaryContainerName"),
        "successCondition": template.get("successCondition"),
        "failureCondition": template.get("failureCondition"),
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**(experiment["metadata"].get("labels") or {}), EXPERIMENT_LABEL: experiment["metadata"]["name"]},
            "ownerReferences": owned_by(experiment),
        },
        "spec": copied({key: value for key, value in trial_spec.items() if value}),
    }


def _run_spec(template: Mapping[str, Any], name: str, namespace: str, assignments: Mapping[str, str]) -> dict[str, Any]:
    """Return the trial's Job: the template with each `${trialParameters.X}` replaced by plain text in its JSON.

    Raises:
        ReconcileError: a parameter is missing in the template, or a value breaks the JSON.
    """
    text = json.dumps(template["trialSpec"], ensure_ascii=False)
    known = {TRIAL_NAME: name, **assignments}
    missing = set(assignments) - {parameter["reference"] for parameter in template["trialParameters"]}
    if missing:
        raise ReconcileError(
            f"unable to find parameter from ParameterAssignment in TrialParameters: {', '.join(sorted(missing))}"
        )
    for parameter in template["trialParameters"]:
        text = text.replace(f"${{trialParameters.{parameter['name']}}}", known[parameter["reference"]])
    try:
        rendered: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise ReconcileError(f"failed to convert string to unstructured: {error}") from error
    rendered["metadata"] = {**(rendered.get("metadata") or {}), "name": name, "namespace": namespace}
    return rendered


FINALIZER = "clean-metrics-in-db"
ENDS = ("Succeeded", "Failed", "EarlyStopped", "MetricsUnavailable")

METRICS_RETRY_SECONDS = 1.0
"""How soon Katib looks again at a succeeded Job without metrics."""


class JobState(NamedTuple):
    """What a Job's conditions mean for its Trial."""

    state: str  # Succeeded | Failed | Running
    reason: str
    message: str


class TrialReconciler:
    """Reconciles Trials."""

    def __init__(self, store: Store, observations: Observations) -> None:
        self._store = store
        self._observations = observations

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for a Trial.

        Raises:
            ReconcileError: the Job cannot be made, or a metric line has no time.
        """
        if is_deleting(obj):
            if FINALIZER in finalizers(obj):
                self._observations.delete(obj["metadata"]["name"])
                self._store.update(TRIALS, *place_of(obj), lambda fresh: remove_finalizer(fresh, FINALIZER))
            return None
        if FINALIZER not in finalizers(obj) or not has_condition(obj, "Created"):
            self._store.update(TRIALS, *place_of(obj), _begin)
            return None
        job = self._job(obj)
        if job is None or (has_condition(obj, *ENDS) and not has_condition(obj, "EarlyStopped")):
            return None
        return self._follow(obj, job)

    def forget(self, key: Key) -> None:
        """Nothing is kept for Trials."""

    def _job(self, trial: Object) -> Object | None:
        """Return the Trial's Job; make it if it is missing, delete it if the Trial is over and shall retain nothing."""
        name, namespace = trial["metadata"]["name"], trial["metadata"]["namespace"]
        job = self._store.find(JOBS, name, namespace)
        if has_condition(trial, *ENDS):
            if job is not None and not trial["spec"].get("retainRun"):
                if not is_deleting(job):
                    self._store.discard(JOBS, name, namespace, "Foreground")
                    self._store.record_event(trial, "Normal", "JobDeleted", f"Job {name} has been deleted")
                return None
            return job
        return job if job is not None else self._create_job(trial)

    def _create_job(self, trial: Object) -> Object:
        job = copied(trial["spec"]["runSpec"])
        job["metadata"]["ownerReferences"] = owned_by(trial)
        try:
            created = self._store.create(JOBS, job, trial["metadata"]["namespace"])
        except ApiError as error:
            raise ReconcileError(error.message) from error
        self._store.record_event(trial, "Normal", "JobCreated", f"Job {job['metadata']['name']} has been created")
        return created

    def _follow(self, trial: Object, job: Object) -> float | None:
        """Write what the Job's state means for the Trial."""
        state = job_state(trial, job)
        if state is None:
            return None
        early = has_condition(trial, "EarlyStopped")
        observation = None
        if state.state == "Succeeded" or early:
            observation = self._observation(trial)
            if state.state == "Succeeded" and observation is None:
                return METRICS_RETRY_SECONDS
        self._write(trial, state, observation)
        return None

    def _observation(self, trial: Object) -> dict[str, Any] | None:
        lines = self._observations.read(trial["metadata"]["name"])
        return observe(lines, trial["spec"]["objective"].get("metricStrategies", ())) if lines else None

    def _write(self, trial: Object, state: JobState, observation: Mapping[str, Any] | None) -> None:
        marked: list[str] = []

        def change(fresh: Object) -> None:
            if observation is not None:
                fresh["status"]["observation"] = copied(dict(observation))
            marked[:] = _mark(fresh, state)

        self._store.update(TRIALS, *place_of(trial), change)
        for what in marked:
            type_, reason, text = _EVENTS[what]
            details = f". {state.message} {state.reason}" if what == "Failed" and (state.message or state.reason) else ""
            self._store.record_event(trial, type_, reason, text.format(trial["metadata"]["name"]) + details)


_EVENTS = {
    "Running": ("Normal", "JobRunning", "Job {} is running"),
    "Succeeded": ("Normal", "JobSucceeded", "Job {} has succeeded"),
    "Failed": ("Normal", "JobFailed", "Job {} has failed"),
    "MetricsUnavailable": ("Warning", "MetricsUnavailable", "Metrics are not available for Job {}"),
}

_ENDINGS = {
    "Succeeded": ("TrialSucceeded", "Trial has succeeded"),
    "Failed": ("TrialFailed", "Trial has failed"),
    "MetricsUnavailable": ("MetricsUnavailable", "Metrics are not available"),
}


def _begin(trial: Object) -> None:
    add_finalizer(trial, FINALIZER)
    status = trial.setdefault("status", {})
    status.setdefault("startTime", now())
    status.setdefault("completionTime", None)
    set_condition(trial, "Created", "TrialCreated", "Trial is created")


def job_state(trial: Mapping[str, Any], job: Mapping[str, Any]) -> JobState | None:
    """Return the state of a Job, failure first; None if it runs on as the Trial knows."""
    for state, kind in (("Failed", "Failed"), ("Succeeded", "Complete")):
        condition = find_condition(job, kind)
        if condition is not None:
            return JobState(state, condition.get("reason", ""), condition.get("message", ""))
    return None if has_condition(trial, "Running") else JobState("Running", "", "")


def _mark(trial: Object, state: JobState) -> list[str]:
    """Set the Trial's condition for a Job's state; return what was marked: nothing or one condition."""
    if state.state == "Running":
        if has_condition(trial, "Running", "EarlyStopped"):
            return []
        set_condition(trial, "Running", "TrialRunning", "Trial is running")
        return ["Running"]
    what = state.state
    if what == "Succeeded" and not is_available(trial):
        what = "MetricsUnavailable"
    if has_condition(trial, what) or (what != "MetricsUnavailable" and has_condition(trial, "EarlyStopped")):
        return []
    reason, message = _ENDINGS[what]
    stop_running(trial)
    set_condition(
        trial,
        what,
        f"{reason}. Job reason: {state.reason}" if state.reason else reason,
        f"{message}. Job message: {state.message}" if state.message else message,
    )
    trial["status"]["completionTime"] = now()
    return [what]
