"""Katib's controllers for Experiments, Suggestions and Trials, as of v0.19.0: one thread, level-triggered.

What is the same: conditions, reasons, messages, counters and lists of the status; the order of checks; finalizers; that deleted
Trials and Jobs are made again; that nothing stops running trials when the experiment is completed. A Trial without metrics is not
counted when new trials are made, but is when the end is checked: with parallelTrialCount above 1 more than maxTrialCount trials
can be started. That is kept as it is, because whoever uses Katib has to live with it.

What is not: the suggestion service is not an object of the cluster, and ready at once; controllers do nothing for an object whose
deletion was requested but remove their finalizer (Katib would make missing children again while another finalizer holds the
object); the trials told to a service are those of the experiment's own namespace; no experiment is restarted after its end, and
none deletes its trials.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from katib_emulation.admission import TRIAL_NAME
from katib_emulation.errors import StatusError
from katib_emulation.objects import (
    EXPERIMENTS,
    JOBS,
    SUGGESTIONS,
    TRIALS,
    Key,
    Kind,
    Object,
    copied,
    finalizers,
    find_condition,
    has_condition,
    is_deleting,
    key_of,
    now,
    owned_by,
    owner_of,
    random_suffix,
    set_condition,
    set_finalizer,
    stop_running,
)
from katib_emulation.observations import Observations, is_available, number, observe
from katib_emulation.store import Store
from katib_emulation.suggestions import Algorithm, MedianStop, algorithm_for, objective_value, results_of, why_refused

EXPERIMENT_LABEL = "katib.kubeflow.org/experiment"
TRIAL_FINALIZER = "clean-metrics-in-db"
METRICS_RETRY_SECONDS = 1.0
"""How soon Katib looks again at a succeeded Job without metrics."""

_ENDS = {
    # state: (reason and message of the condition, type, reason and text of the event)
    "Succeeded": ("TrialSucceeded", "Trial has succeeded", "Normal", "JobSucceeded", "Job {} has succeeded"),
    "Failed": ("TrialFailed", "Trial has failed", "Normal", "JobFailed", "Job {} has failed"),
    "MetricsUnavailable": (
        "MetricsUnavailable",
        "Metrics are not available",
        "Warning",
        "MetricsUnavailable",
        "Metrics are not available for Job {}",
    ),
}
EXPERIMENT_FINALIZER = "update-prometheus-metrics"
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.005, 1000.0  # of what failed; it doubles each time, as by controller-runtime
LOST_RETRY_SECONDS = 0.01  # how soon an answer is asked for again that was thrown away
log = logging.getLogger(__name__)


class ReconcileError(Exception):
    """Something that Katib foresees went wrong: the object gets a Warning event with this text, and another try later."""


class JobState(NamedTuple):
    """What a Job's conditions mean for its Trial."""

    state: str  # Succeeded | Failed | Running
    reason: str
    message: str


def new_trial(experiment: Mapping[str, Any], suggestion: Mapping[str, Any]) -> Object:
    """Return the Trial for one entry of a Suggestion's status.

    Raises:
        ReconcileError: the template cannot be filled.
    """
    spec, template, metadata = experiment["spec"], experiment["spec"]["trialTemplate"], experiment["metadata"]
    name, namespace = suggestion["name"], metadata["namespace"]
    assignments = suggestion.get("parameterAssignments", [])
    trial_spec = {
        "objective": spec["objective"],
        "parameterAssignments": assignments,
        "earlyStoppingRules": suggestion.get("earlyStoppingRules") if "earlyStopping" in spec else None,
        "runSpec": _run_spec(template, name, namespace, {assignment["name"]: assignment["value"] for assignment in assignments}),
        "retainRun": template.get("retain"),
        "metricsCollector": spec["metricsCollectorSpec"],
        **{field: template.get(field) for field in ("primaryContainerName", "successCondition", "failureCondition")},
    }
    labels = {**(metadata.get("labels") or {}), EXPERIMENT_LABEL: metadata["name"]}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owned_by(experiment)},
        "spec": copied({key: value for key, value in trial_spec.items() if value}),
    }


def _run_spec(template: Mapping[str, Any], name: str, namespace: str, assignments: Mapping[str, str]) -> dict[str, Any]:
    """Return the trial's Job: the template with each `${trialParameters.X}` replaced by plain text in its JSON."""
    text = json.dumps(template["trialSpec"], ensure_ascii=False)
    values = {TRIAL_NAME: name, **assignments}
    missing = set(assignments) - {parameter["reference"] for parameter in template["trialParameters"]}
    if missing:
        names = ", ".join(sorted(missing))
        raise ReconcileError(f"unable to find parameter from ParameterAssignment in TrialParameters: {names}")
    for parameter in template["trialParameters"]:
        text = text.replace(f"${{trialParameters.{parameter['name']}}}", values[parameter["reference"]])
    try:
        job: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise ReconcileError(f"failed to convert string to unstructured: {error}") from error
    job["metadata"] = {**(job.get("metadata") or {}), "name": name, "namespace": namespace}
    return job


class TrialReconciler:
    """Reconciles Trials."""

    def __init__(self, store: Store, observations: Observations) -> None:
        self._store, self._observations = store, observations

    def reconcile(self, trial: Object) -> float | None:
        """Do the next step for a Trial, which must not be changed; return after how many seconds to look again, if at all.

        Raises:
            ReconcileError: the Job cannot be made.
        """
        _, namespace, name = key_of(TRIALS, trial)
        if is_deleting(trial):
            self._observations.delete(name)
            self._store.update(TRIALS, name, namespace, lambda fresh: set_finalizer(fresh, TRIAL_FINALIZER, False))
            return None
        if not has_condition(trial, "Created"):
            self._store.update(TRIALS, name, namespace, _begin)
            return None
        job = self._store.find(JOBS, name, namespace)
        is_over = has_condition(trial, *_ENDS, "EarlyStopped")
        if is_over and job is not None and not trial["spec"].get("retainRun"):
            if not is_deleting(job):
                self._store.delete(JOBS, name, namespace, "Foreground")
                self._store.record_event(trial, "Normal", "JobDeleted", f"Job {name} has been deleted")
            return None
        if job is None and not is_over:
            new = copied(trial["spec"]["runSpec"])
            new["metadata"]["ownerReferences"] = owned_by(trial)
            try:
                job = self._store.create(JOBS, new, namespace)
            except StatusError as error:
                raise ReconcileError(error.message) from error
            self._store.record_event(trial, "Normal", "JobCreated", f"Job {new['metadata']['name']} has been created")
        if job is None or (has_condition(trial, *_ENDS) and not has_condition(trial, "EarlyStopped")):
            return None
        return self._follow(trial, job)

    def forget(self, key: Key) -> None:
        """Nothing is kept for Trials."""

    def _follow(self, trial: Object, job: Object) -> float | None:
        """Write what the Job's state means for the Trial."""
        state = job_state(trial, job)
        if state is None:
            return None
        _, namespace, name = key_of(TRIALS, trial)
        observation = None
        if state.state == "Succeeded" or has_condition(trial, "EarlyStopped"):
            lines = self._observations.read(name)
            observation = observe(lines, trial["spec"]["objective"].get("metricStrategies", ())) if lines else None
            if state.state == "Succeeded" and observation is None:
                return METRICS_RETRY_SECONDS
        events: list[tuple[str, str, str]] = []

        def change(fresh: Object) -> None:
            if observation is not None:
                fresh["status"]["observation"] = copied(observation)
            events.extend(_mark(fresh, state))

        self._store.update(TRIALS, name, namespace, change)
        for event in events:
            self._store.record_event(trial, *event)
        return None


def _begin(trial: Object) -> None:
    set_finalizer(trial, TRIAL_FINALIZER, True)
    trial["status"] = {"startTime": now(), "completionTime": None, **(trial.get("status") or {})}
    set_condition(trial, "Created", "TrialCreated", "Trial is created")


def job_state(trial: Mapping[str, Any], job: Mapping[str, Any]) -> JobState | None:
    """Return the state of a Job, failure first; None if it runs on as the Trial knows."""
    for state, kind in (("Failed", "Failed"), ("Succeeded", "Complete")):
        condition = find_condition(job, kind)
        if condition is not None:
            return JobState(state, condition.get("reason", ""), condition.get("message", ""))
    return None if has_condition(trial, "Running") else JobState("Running", "", "")


def _mark(trial: Object, job: JobState) -> list[tuple[str, str, str]]:
    """Set the Trial's condition for a Job's state; return the event for it (type, reason, message), if something was set."""
    name, end = trial["metadata"]["name"], job.state
    if end == "Running":
        if has_condition(trial, "Running", "EarlyStopped"):
            return []
        set_condition(trial, "Running", "TrialRunning", "Trial is running")
        return [("Normal", "JobRunning", f"Job {name} is running")]
    if end == "Succeeded" and not is_available(trial):
        end = "MetricsUnavailable"
    if has_condition(trial, end) or (end != "MetricsUnavailable" and has_condition(trial, "EarlyStopped")):
        return []
    reason, message, type_, event_reason, text = _ENDS[end]
    stop_running(trial)
    reason = f"{reason}. Job reason: {job.reason}" if job.reason else reason
    set_condition(trial, end, reason, f"{message}. Job message: {job.message}" if job.message else message)
    trial["status"]["completionTime"] = now()
    details = f". {job.message} {job.reason}" if end == "Failed" and (job.message or job.reason) else ""
    return [(type_, event_reason, text.format(name) + details)]


COUNTED = {
    # state of a Trial, in the order in which they count: the first whose condition is True; (its list in the status, its counter)
    "Failed": ("failedTrialList", "trialsFailed"),
    "Succeeded": ("succeededTrialList", "trialsSucceeded"),
    "EarlyStopped": ("earlyStoppedTrialList", "trialsEarlyStopped"),
    "Running": ("runningTrialList", "trialsRunning"),
    "MetricsUnavailable": ("metricsUnavailableTrialList", "trialMetricsUnavailable"),
    "Pending": ("pendingTrialList", "trialsPending"),  # there is no such condition: none is True
}


@dataclass(frozen=True, slots=True)
class Standing:
    """One Trial as its Experiment sees it."""

    trial: Object
    name: str
    state: str  # one of COUNTED
    value: str | None  # the objective's, by its strategy; None: none yet
    is_unfinished: bool  # stopped early, and its observation is not there yet


def trials_of(store: Store, experiment: Key) -> list[Object]:
    """Return the Trials that carry the experiment's label, the oldest first: for reading only."""
    trials = store.oldest_first(TRIALS, experiment.namespace)
    return [trial for trial in trials if (trial["metadata"].get("labels") or {}).get(EXPERIMENT_LABEL) == experiment.name]


class ExperimentReconciler:
    """Reconciles Experiments."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._standings: dict[Key, dict[str, Standing]] = {}  # of Trials that have not changed since, by uid

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for an Experiment, which must not be changed.

        Raises:
            ReconcileError: a Trial cannot be made of a suggestion.
        """
        key = key_of(EXPERIMENTS, obj)
        if is_deleting(obj) or EXPERIMENT_FINALIZER not in finalizers(obj):
            self._update(key, lambda fresh: set_finalizer(fresh, EXPERIMENT_FINALIZER, not is_deleting(fresh)))
            return None
        experiment: Object = {**obj, "status": copied(obj.get("status") or {})}  # what may change here is the status
        status = experiment["status"]
        if has_condition(experiment, "Succeeded", "Failed"):
            suggestion = self._store.find(SUGGESTIONS, key.name, key.namespace)
            if suggestion is not None and not has_condition(suggestion, "Succeeded", "Failed"):
                self._store.update(SUGGESTIONS, key.name, key.namespace, _end_suggestion)
            if not status.get("trialsRunning"):
                return None
        if has_condition(experiment, "Created"):
            self._proceed(key, experiment)
        else:
            optimum: Object = {"observation": {}}
            status |= {"startTime": now(), "completionTime": None, "currentOptimalTrial": optimum}
            set_condition(experiment, "Created", "ExperimentCreated", "Experiment is created")
        if status != obj.get("status"):
            self._update(key, lambda fresh: fresh.update(status=status))
        return None

    def forget(self, key: Key) -> None:
        """Let go of the standings of the Trials."""
        self._standings.pop(key, None)

    def _update(self, key: Key, change: Any) -> None:
        self._store.update(EXPERIMENTS, key.name, key.namespace, change)

    def _proceed(self, key: Key, experiment: Object) -> None:
        """Bring the status up to date, and the number of active Trials to what is asked for."""
        spec, status = experiment["spec"], experiment["status"]
        trials = self._standings_of(key)
        if trials:  # as in Katib: whoever deletes the only Trial leaves the counters as they were, and gets no new one
            status["trials"] = len(trials)
            for state, (listing, counter) in COUNTED.items():
                names = [trial.name for trial in trials if trial.state == state]
                status |= {listing: names, counter: len(names)}
                if not names:
                    del status[listing], status[counter]
            goal_reached = _find_best(experiment, trials)
            if not has_condition(experiment, "Succeeded", "Failed"):
                _conclude(experiment, goal_reached)
        if has_condition(experiment, "Succeeded", "Failed"):
            return
        active = count(status, "Pending", "Running")
        completed = count(status, "Succeeded", "Failed", "EarlyStopped")  # not MetricsUnavailable, as in Katib
        wanted = spec["parallelTrialCount"]
        if "maxTrialCount" in spec:
            wanted = min(spec["maxTrialCount"] - completed, wanted)
        if wanted > active:
            self._create_trials(key, experiment, trials, wanted - active)

    def _standings_of(self, key: Key) -> list[Standing]:
        before, standings = self._standings.get(key, {}), {}
        for trial in trials_of(self._store, key):
            metadata = trial["metadata"]
            standing = before.get(metadata["uid"])
            if standing is None or standing.trial is not trial:
                state = next((name for name in COUNTED if has_condition(trial, name)), "Pending")
                unfinished = has_condition(trial, "EarlyStopped") and not is_available(trial)
                standing = Standing(trial, metadata["name"], state, objective_value(trial), unfinished)
            standings[metadata["uid"]] = standing
        self._standings[key] = standings
        return list(standings.values())

    def _create_trials(self, key: Key, experiment: Object, trials: Sequence[Standing], missing: int) -> None:
        """Ask for suggestions, and make Trials of all that have none: of the Trials that somebody deleted, too."""
        requests = len(trials) + missing - sum(trial.is_unfinished for trial in trials)
        suggestion = self._store.find(SUGGESTIONS, key.name, key.namespace)
        if suggestion is None:
            metadata, spec = experiment["metadata"], experiment["spec"]
            kept = {part: metadata[part] for part in ("labels", "annotations") if metadata.get(part)}
            parts = {part: spec[part] for part in ("algorithm", "earlyStopping", "resumePolicy") if part in spec}
            new = {
                "metadata": {"name": metadata["name"], **kept, "ownerReferences": owned_by(experiment)},
                "spec": {**parts, "requests": requests},
            }
            self._store.create(SUGGESTIONS, new, key.namespace)
            return
        if has_condition(suggestion, "Failed"):
            stop_running(experiment)
            set_condition(experiment, "Failed", "ExperimentFailed", "Suggestion has failed")
            return
        self._store.update(SUGGESTIONS, key.name, key.namespace, lambda fresh: fresh["spec"].update(requests=requests))
        names = {trial.name for trial in trials}
        for entry in (suggestion.get("status") or {}).get("suggestions", ()):
            if entry["name"] not in names:
                self._store.ensure(TRIALS, new_trial(experiment, entry), key.namespace)


def _end_suggestion(suggestion: Object) -> None:
    for kind, text in (("Running", "Suggestion is not running"), ("DeploymentReady", "Deployment is not ready")):
        if find_condition(suggestion, kind) is not None:
            set_condition(suggestion, kind, "Suggestion is succeeded", text, "False")
    set_condition(suggestion, "Succeeded", "Experiment is succeeded", "Suggestion is succeeded, can't be restarted")


def count(status: Mapping[str, Any], *states: str) -> int:
    """Return how many Trials a summarized status has in the states."""
    return sum(status.get(COUNTED[state][1], 0) for state in states)


def _find_best(experiment: Object, trials: Sequence[Standing]) -> bool:
    """Write `currentOptimalTrial`; return whether the goal is reached. A value that is not a number makes its trial the best."""
    objective = experiment["spec"]["objective"]
    goal, sign = objective.get("goal"), -1 if objective["type"] == "minimize" else 1
    best: Object | None = None
    best_value, reached = 0.0, False
    for trial in trials:
        if trial.value is None:
            continue
        value = number(trial.value)
        if value is None:
            best = trial.trial
            continue
        if best is None or sign * value > sign * best_value:
            best, best_value = trial.trial, value
        reached = reached or (goal is not None and sign * best_value >= sign * goal)
    if best is not None:
        experiment["status"]["currentOptimalTrial"] = {
            "bestTrialName": best["metadata"]["name"],
            "parameterAssignments": copied(best["spec"].get("parameterAssignments", [])),
            "observation": copied(best["status"]["observation"]),
        }
    return reached


def _conclude(experiment: Object, goal_reached: bool) -> None:
    """Mark the end if it is reached."""
    spec, status = experiment["spec"], experiment["status"]
    completed = count(status, "Succeeded", "Failed", "EarlyStopped", "MetricsUnavailable")
    failed = count(status, "Failed", "MetricsUnavailable")
    most, most_failed = spec.get("maxTrialCount"), spec.get("maxFailedTrialCount")
    why = None
    if goal_reached:
        why = ("Succeeded", "ExperimentGoalReached", "Experiment has succeeded because Objective goal has reached")
    elif most_failed is not None and failed != 0 and failed >= most_failed:
        why = ("Failed", "ExperimentFailed", "Experiment has failed because max failed count has reached")
    elif most is not None and completed >= most:
        why = ("Succeeded", "ExperimentMaxTrialsReached", "Experiment has succeeded because max trial count has reached")
    if why is None:
        set_condition(experiment, "Running", "ExperimentRunning", "Experiment is running")
        return
    stop_running(experiment)
    set_condition(experiment, *why)
    status["completionTime"] = now()


class SuggestionService:
    """What the pod of a suggestion service has in its memory. `lost`: how many configurations nobody got."""

    def __init__(self, uid: str, algorithm: Algorithm, early_stopping: MedianStop | None) -> None:
        self.uid, self.algorithm, self.early_stopping = uid, algorithm, early_stopping
        self.lost = 0


class SuggestionReconciler:
    """Reconciles Suggestions: validates the settings once, and answers requests from the algorithm at work."""

    def __init__(self, store: Store, observations: Observations, lose_answers: int | None = None) -> None:
        """`lose_answers`: throw away every so manieth answer of a service, and ask it again.

        So Katib does where the Suggestion was changed while its service answered: the update is refused as a conflict.
        """
        self._store, self._observations = store, observations
        self._lose_answers, self._answers = lose_answers, 0
        self._services: dict[Key, SuggestionService] = {}

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for a Suggestion.

        Raises:
            ReconcileError: the service raised.
        """
        key = key_of(SUGGESTIONS, obj)
        experiment = self._store.find(EXPERIMENTS, key.name, key.namespace)
        if is_deleting(obj) or experiment is None or has_condition(obj, "Succeeded", "Failed"):
            return None
        if has_condition(obj, "Running"):
            return self._answer(key, obj, experiment)
        why = why_refused(experiment)

        def begin(fresh: Object) -> None:
            fresh.setdefault("status", {}).setdefault("startTime", now())
            set_condition(fresh, "Created", "SuggestionCreated", "Suggestion is created")
            set_condition(fresh, "DeploymentReady", "DeploymentReady", "Deployment is ready")
            if why is None:
                set_condition(fresh, "Running", "SuggestionRunning", "Suggestion is running")
            else:
                set_condition(fresh, "Failed", "SuggestionFailed", f"Validation failed: {why}")

        self._store.update(SUGGESTIONS, key.name, key.namespace, begin)
        return None

    def forget(self, key: Key) -> None:
        """Let the service of a Suggestion go."""
        self._services.pop(key, None)

    def _answer(self, key: Key, obj: Object, experiment: Object) -> float | None:
        """Append the suggestions that are asked for and missing; return when to ask again, if they are thrown away."""
        suggestions: Sequence[Mapping[str, Any]] = obj["status"].get("suggestions", ())
        missing = obj["spec"].get("requests", 0) - len(suggestions)
        if missing <= 0:
            return None
        trials = trials_of(self._store, key)
        try:
            service = self._service(key, obj, experiment)
            results, first = results_of(trials), len(suggestions) + service.lost
            configurations = [service.algorithm.suggest(first + i, results) for i in range(missing)]
            rules = service.early_stopping.rules(trials) if service.early_stopping is not None else []
        except Exception as error:  # services raise whatever their libraries raise; the caller of gRPC gets the text of it
            text = f"Exception calling application: {error}"
            raise ReconcileError(f"rpc error: code = Unknown desc = {text}") from error
        self._answers += 1
        if self._lose_answers is not None and self._answers % self._lose_answers == 0:
            service.lost += missing
            return LOST_RETRY_SECONDS
        entries: list[Mapping[str, Any]] = [*suggestions]
        for configuration in configurations:
            assignments = [{"name": name, "value": value} for name, value in configuration.items()]
            entry = {"name": f"{key.name}-{random_suffix(8)}", "parameterAssignments": assignments}
            entries.append({**entry, "earlyStoppingRules": rules} if rules else entry)
        answer = {"suggestions": entries, "suggestionCount": len(entries)}
        self._store.update(SUGGESTIONS, key.name, key.namespace, lambda fresh: fresh["status"].update(answer))
        return None

    def _service(self, key: Key, obj: Object, experiment: Object) -> SuggestionService:
        service, uid = self._services.get(key), obj["metadata"]["uid"]
        if service is None or service.uid != uid:
            metric = experiment["spec"]["objective"]["objectiveMetricName"]

            def reports(trial: str) -> list[str]:
                return [line.value for line in self._observations.read(trial) if line.name == metric]

            assignments_of_trials = [entry.get("parameterAssignments", ()) for entry in obj["status"].get("suggestions", ())]
            past = [
                {assignment["name"]: assignment["value"] for assignment in assignments} for assignments in assignments_of_trials
            ]
            early = MedianStop(experiment, reports) if "earlyStopping" in experiment["spec"] else None
            service = self._services[key] = SuggestionService(uid, algorithm_for(experiment, past), early)
        return service


class Controllers:
    """Runs Katib's controllers on a store, from `start` to `stop`. After a restart of the server they go on where they were."""

    def __init__(self, store: Store, observations: Observations, lose_answers: int | None = None) -> None:
        """`lose_answers`: of the suggestion services, as `SuggestionReconciler` has it."""
        self._store = store
        self._due: dict[Key, float] = {}  # when to look at an object, by time.monotonic(); each at most once
        self._failures: Counter[Key] = Counter()
        self._changes = store.subscribe(EXPERIMENTS, TRIALS, SUGGESTIONS, JOBS, initial=True)
        self._reconcilers: dict[Kind, ExperimentReconciler | SuggestionReconciler | TrialReconciler] = {
            EXPERIMENTS: ExperimentReconciler(store),
            SUGGESTIONS: SuggestionReconciler(store, observations, lose_answers),
            TRIALS: TrialReconciler(store, observations),
        }
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def start(self) -> None:
        """Start to reconcile; objects that are there already are looked at first."""
        self._thread.start()

    def stop(self) -> None:
        """End after the step under way. May be called twice, and without `start`."""
        self._changes.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._changes.is_closed:
            key, due = min(self._due.items(), key=lambda item: item[1], default=(None, None))
            change = self._changes.next(None if due is None else max(0.0, due - time.monotonic()))
            if change is not None:  # all changes first, so that one look serves many of them
                self._take(key_of(change.kind, change.object), change.object)
            elif key is not None and due is not None and due <= time.monotonic() and not self._changes.is_closed:
                del self._due[key]
                self._reconcile(key)

    def _take(self, key: Key, obj: Object) -> None:
        """Plan what has to look at an object that changed: its own controller, and that of its owner."""
        owner_kind = TRIALS if key.kind is JOBS else EXPERIMENTS
        owner = owner_of(obj, owner_kind)
        keys = [key] if key.kind in self._reconcilers else []
        for touched in [*keys, Key(owner_kind, key.namespace, owner)] if owner is not None else keys:
            self._due[touched] = min(self._due.get(touched, time.monotonic()), time.monotonic())

    def _reconcile(self, key: Key) -> None:
        reconciler = self._reconcilers[key.kind]
        obj = self._store.find(key.kind, key.name, key.namespace)
        if obj is None:
            reconciler.forget(key)
            self._failures.pop(key, None)
            return
        try:
            again = reconciler.reconcile(obj)
        except Exception as error:  # one object's fault must not end the controllers of all others; it is shown, and tried again
            if not isinstance(error, ReconcileError):
                log.exception("%s %s/%s cannot be reconciled", key.kind.kind, key.namespace, key.name)
            text = str(error) if key.kind is SUGGESTIONS else f"Failed to reconcile: {error}"
            self._store.record_event(obj, "Warning", "ReconcileError", text)
            again = min(FIRST_RETRY_SECONDS * 2.0 ** min(self._failures[key], 20), LAST_RETRY_SECONDS)
            self._failures[key] += 1
        else:
            self._failures.pop(key, None)
        if again is not None:
            self._due.setdefault(key, time.monotonic() + again)
