"""The trial controller: makes the Job of each Trial, and turns the Job's end and the metrics into the Trial's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from katib_emulation.conditions import has_condition, matching, set_condition, stop_running
from katib_emulation.controllers.finalizers import add_finalizer, remove_finalizer
from katib_emulation.controllers.observation import is_available, observe
from katib_emulation.controllers.reconciling import ReconcileError
from katib_emulation.controllers.view import ClusterView, owned_by
from katib_emulation.kinds import JOBS, TRIALS
from katib_emulation.objects import Key, Object, copied, finalizers, is_deleting, now
from katib_emulation.observations import UNAVAILABLE, ZERO_TIME, Observation, Observations
from katib_emulation.statuses import ApiError

FINALIZER = "clean-metrics-in-db"
ENDS = ("Succeeded", "Failed", "Killed", "EarlyStopped", "MetricsUnavailable")

METRICS_RETRY_SECONDS = 1.0
"""How soon Katib looks again at a succeeded Job without metrics."""


class JobState(NamedTuple):
    """What a Job's conditions mean for its Trial."""

    state: str  # Succeeded | Failed | Running
    reason: str
    message: str


class TrialReconciler:
    """Reconciles Trials."""

    def __init__(self, cluster: ClusterView, observations: Observations) -> None:
        self._cluster = cluster
        self._observations = observations

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for a Trial.

        Raises:
            ReconcileError: the Job cannot be made, or a metric line has no time.
        """
        if is_deleting(obj):
            release(self._cluster, self._observations, obj)
            return None
        if FINALIZER not in finalizers(obj) or not has_condition(obj, "Created"):
            self._cluster.update(TRIALS, obj, _begin)
            return None
        job = self._job(obj)
        if job is None or (has_condition(obj, *ENDS) and not has_condition(obj, "EarlyStopped")):
            return None
        return self._follow(obj, job)

    def forget(self, key: Key) -> None:
        """Nothing is kept for Trials."""

    def event_text(self, error: Exception) -> str:
        """Return the message of the event for a failed step."""
        return f"Failed to reconcile: {error}"

    def _job(self, trial: Object) -> Object | None:
        """Return the Trial's Job; make it if it is missing, delete it if the Trial is over and shall retain nothing."""
        name, namespace = trial["metadata"]["name"], trial["metadata"]["namespace"]
        job = self._cluster.get(JOBS, namespace, name)
        if has_condition(trial, *ENDS):
            if job is not None and not trial["spec"].get("retainRun"):
                if not is_deleting(job):
                    self._cluster.delete(JOBS, namespace, name, foreground=True)
                    self._cluster.event(trial, "Normal", "JobDeleted", f"Job {name} has been deleted")
                return None
            return job
        return job if job is not None else self._create_job(trial)

    def _create_job(self, trial: Object) -> Object:
        job = copied(trial["spec"]["runSpec"])
        if (job.get("apiVersion"), job.get("kind")) != (JOBS.api_version, JOBS.kind):
            kind, version = job.get("kind"), job.get("apiVersion")
            raise ReconcileError(f'no matches for kind "{kind}" in version "{version}"')
        job["metadata"]["ownerReferences"] = owned_by(trial)
        try:
            created = self._cluster.create(JOBS, job, trial["metadata"]["namespace"])
        except ApiError as error:
            raise ReconcileError(error.message) from error
        self._cluster.event(trial, "Normal", "JobCreated", f"Job {job['metadata']['name']} has been created")
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
                if trial["spec"]["metricsCollector"]["collector"]["kind"] != "Push":
                    return METRICS_RETRY_SECONDS
                objective = trial["spec"]["objective"]["objectiveMetricName"]
                line = Observation(ZERO_TIME, objective, UNAVAILABLE)
                self._observations.report(trial["metadata"]["name"], [line])
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

        self._cluster.update(TRIALS, trial, change)
        for what in marked:
            type_, reason, text = _EVENTS[what]
            details = f". {state.message} {state.reason}" if what == "Failed" and (state.message or state.reason) else ""
            self._cluster.event(trial, type_, reason, text.format(trial["metadata"]["name"]) + details)


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


def release(cluster: ClusterView, observations: Observations, trial: Object) -> None:
    """Let a Trial that is being deleted go, after its metrics."""
    if FINALIZER in finalizers(trial):
        observations.delete(trial["metadata"]["name"])
        cluster.update(TRIALS, trial, lambda fresh: remove_finalizer(fresh, FINALIZER))


def _begin(trial: Object) -> None:
    add_finalizer(trial, FINALIZER)
    status = trial.setdefault("status", {})
    status.setdefault("startTime", now())
    status.setdefault("completionTime", None)
    set_condition(trial, "Created", "TrialCreated", "Trial is created")


def job_state(trial: Mapping[str, Any], job: Mapping[str, Any]) -> JobState | None:
    """Return the state of a Job by the trial template's conditions, failure first; None if it runs on as the Trial knows."""
    for state, expression in (("Failed", "failureCondition"), ("Succeeded", "successCondition")):
        condition = matching(job, trial["spec"].get(expression, ""))
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
