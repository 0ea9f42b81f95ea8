"""Katib's controllers for Experiments, Suggestions and Trials, as of v0.19.0, and that of Jobs: one thread, level-triggered.

What is the same: conditions, reasons, messages, counters and lists of the status; the order of checks; finalizers; that deleted
Trials and Jobs are made again; that nothing stops running trials when the experiment is completed. A Trial without metrics is not
counted when new trials are made, but is when the end is checked: with parallelTrialCount above 1 more than maxTrialCount trials
can be started. That is kept as it is, because whoever uses Katib has to live with it.

What is not: the suggestion service is not an object of the cluster, and ready at once; controllers do nothing for an object whose
deletion was requested but remove their finalizer (Katib would make missing children again while another finalizer holds the
object); the trials told to a service are those of the experiment's own namespace; no experiment is restarted after its end, and
none deletes its trials; Jobs have no deadline.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from katib_emulation.admission import TRIAL_NAME
from katib_emulation.collector import Observations, inject, is_available, number, observe
from katib_emulation.node import TRACKING
from katib_emulation.objects import (
    EXPERIMENTS,
    JOBS,
    PODS,
    SUGGESTIONS,
    TRIALS,
    Key,
    Kind,
    Object,
    StatusError,
    Store,
    copied,
    finalizers,
    find_condition,
    has_condition,
    is_deleting,
    is_finished,
    key_of,
    now,
    owned_by,
    owner_of,
    random_suffix,
    set_condition,
    set_finalizer,
    stop_running,
)
from katib_emulation.suggestions import Algorithm, MedianStop, algorithm_for, ended_of, objective_value

EXPERIMENT_LABEL = "katib.kubeflow.org/experiment"
TRIAL_FINALIZER, EXPERIMENT_FINALIZER = "clean-metrics-in-db", "update-prometheus-metrics"
METRICS_RETRY_SECONDS = 1.0
"""How soon Katib looks again at a succeeded Job without metrics."""

RETRY_SECONDS = 1.0  # how soon to try again what failed
UNMEASURED = "MetricsUnavailable"
LOST_RETRY_SECONDS = 0.01  # how soon an answer is asked for again that was thrown away
_ENDS = {
    # state of a Trial: (reason and message of the condition, reason and text of the event)
    "Succeeded": ("TrialSucceeded", "Trial has succeeded", "JobSucceeded", "Job {} has succeeded"),
    "Failed": ("TrialFailed", "Trial has failed", "JobFailed", "Job {} has failed"),
    UNMEASURED: (UNMEASURED, "Metrics are not available", UNMEASURED, "Metrics are not available for Job {}"),
}
COUNTED = {
    # state of a Trial, in the order in which they count: the first whose condition is True; (its list in the status, its counter)
    "Failed": ("failedTrialList", "trialsFailed"),
    "Succeeded": ("succeededTrialList", "trialsSucceeded"),
    "EarlyStopped": ("earlyStoppedTrialList", "trialsEarlyStopped"),
    "Running": ("runningTrialList", "trialsRunning"),
    "MetricsUnavailable": ("metricsUnavailableTrialList", "trialMetricsUnavailable"),
    "Pending": ("pendingTrialList", "trialsPending"),  # there is no such condition: none is True
}
FIRST_BACKOFF_SECONDS = 10.0  # of a Job's pods; it doubles with each retry
REFUSED_POD_SECONDS = 10.0
BACKOFF_LIMIT_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")

UID_LABEL = "controller-uid"
_LONGEST_PREFIX = 57  # a generated name has 63 characters at most
log = logging.getLogger(__name__)


class ReconcileError(Exception):
    """Something that Katib foresees went wrong: the object gets a Warning event with this text, and another try later."""


def new_trial(experiment: Mapping[str, Any], suggestion: Mapping[str, Any]) -> Object:
    """Return the Trial for one entry of a Suggestion's status.

    Its Job is the template with each `${trialParameters.X}` replaced by plain text in its JSON.
    """
    spec, template, metadata = experiment["spec"], experiment["spec"]["trialTemplate"], experiment["metadata"]
    name, namespace = suggestion["name"], metadata["namespace"]
    assignments = {entry["name"]: entry["value"] for entry in suggestion.get("parameterAssignments", ())}
    text, values = json.dumps(template["trialSpec"], ensure_ascii=False), {TRIAL_NAME: name, **assignments}
    for parameter in template["trialParameters"]:
        text = text.replace(f"${{trialParameters.{parameter['name']}}}", values[parameter["reference"]])
    job: dict[str, Any] = json.loads(text)
    job["metadata"] = {**(job.get("metadata") or {}), "name": name, "namespace": namespace}
    trial_spec = {
        "objective": spec["objective"],
        "parameterAssignments": suggestion.get("parameterAssignments"),
        "earlyStoppingRules": suggestion.get("earlyStoppingRules"),
        "runSpec": job,
        "retainRun": template.get("retain"),
        "metricsCollector": spec["metricsCollectorSpec"],
        **{field: template.get(field) for field in ("primaryContainerName", "successCondition", "failureCondition")},
    }
    labels = {**(metadata.get("labels") or {}), EXPERIMENT_LABEL: metadata["name"]}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owned_by(experiment)},
        "spec": copied({key: value for key, value in trial_spec.items() if value}),
    }


class TrialReconciler:
    """Reconciles Trials."""

    def __init__(self, store: Store, observations: Observations) -> None:
        self._store, self._observations = store, observations

    def reconcile(self, trial: Object) -> float | None:
        """Do the next step for a Trial, which must not be changed; return after how many seconds to look again, if at all."""
        _, namespace, name = key_of(TRIALS, trial)
        if is_deleting(trial):
            self._observations.delete(name)
            self._store.update(TRIALS, name, namespace, lambda fresh: set_finalizer(fresh, TRIAL_FINALIZER, False))
            return None
        if not has_condition(trial, "Created"):

            def begin(fresh: Object) -> None:
                set_finalizer(fresh, TRIAL_FINALIZER, True)
                fresh["status"] = {"startTime": now(), "completionTime": None, **(fresh.get("status") or {})}
                set_condition(fresh, "Created", "TrialCreated", "Trial is created")

            self._store.update(TRIALS, name, namespace, begin)
            return None
        job = self._store.find(JOBS, name, namespace)
        is_over, is_stopped = has_condition(trial, *_ENDS, "EarlyStopped"), has_condition(trial, "EarlyStopped")
        if is_over and job is not None and not trial["spec"].get("retainRun"):
            if not is_deleting(job):
                self._store.delete(JOBS, name, namespace, "Foreground")
                self._store.record_event(trial, "Normal", "JobDeleted", f"Job {name} has been deleted")
            return None
        if job is None and not is_over:
            new = copied(trial["spec"]["runSpec"])
            new["metadata"]["ownerReferences"] = owned_by(trial)
            job = self._store.create(JOBS, new, namespace)
            self._store.record_event(trial, "Normal", "JobCreated", f"Job {name} has been created")
        if job is None or (is_over and not is_stopped):
            return None
        return self._follow(trial, job, is_stopped)

    def _follow(self, trial: Object, job: Object, is_stopped: bool) -> float | None:
        """Write what the Job's state, failure first, means for the Trial; return when to look again for missing metrics."""
        _, namespace, name = key_of(TRIALS, trial)
        end = find_condition(job, "Failed") or find_condition(job, "Complete")
        if end is None:
            if not has_condition(trial, "Running", "EarlyStopped"):
                begin = ("Running", "TrialRunning", "Trial is running")
                self._store.update(TRIALS, name, namespace, lambda fresh: set_condition(fresh, *begin))
                self._store.record_event(trial, "Normal", "JobRunning", f"Job {name} is running")
            return None
        state, observation = "Failed" if end["type"] == "Failed" else "Succeeded", None
        if state == "Succeeded" or is_stopped:
            lines = self._observations.read(name)
            observation = observe(lines, trial["spec"]["objective"].get("metricStrategies", ())) if lines else None
            if state == "Succeeded" and observation is None:
                return METRICS_RETRY_SECONDS
        events: list[tuple[str, str, str]] = []

        def change(fresh: Object) -> None:
            if observation is not None:
                fresh["status"]["observation"] = copied(observation)
            to = UNMEASURED if state == "Succeeded" and not is_available(fresh) else state
            if has_condition(fresh, to) or (to != UNMEASURED and has_condition(fresh, "EarlyStopped")):
                return
            reason, message, event_reason, text = _ENDS[to]
            job_reason, job_message = end.get("reason", ""), end.get("message", "")
            stop_running(fresh)
            reason = f"{reason}. Job reason: {job_reason}" if job_reason else reason
            set_condition(fresh, to, reason, f"{message}. Job message: {job_message}" if job_message else message)
            fresh["status"]["completionTime"] = now()
            details = f". {job_message} {job_reason}" if to == "Failed" and (job_message or job_reason) else ""
            events.append(("Warning" if to == UNMEASURED else "Normal", event_reason, text.format(name) + details))

        self._store.update(TRIALS, name, namespace, change)
        for event in events:
            self._store.record_event(trial, *event)
        return None


@dataclass(frozen=True, slots=True)
class Standing:
    """One Trial as its Experiment sees it."""

    trial: Object
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
        self._standings: dict[str, Standing] = {}  # of Trials that have not changed since, by uid

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for an Experiment, which must not be changed."""
        key = key_of(EXPERIMENTS, obj)
        if is_deleting(obj) or EXPERIMENT_FINALIZER not in finalizers(obj):

            def settle(fresh: Object) -> None:
                set_finalizer(fresh, EXPERIMENT_FINALIZER, not is_deleting(fresh))

            self._store.update(EXPERIMENTS, key.name, key.namespace, settle)
            return None
        experiment: Object = {**obj, "status": copied(obj.get("status") or {})}  # what may change here is the status
        status = experiment["status"]
        if has_condition(experiment, "Succeeded", "Failed"):
            suggestion = self._store.find(SUGGESTIONS, key.name, key.namespace)
            if suggestion is not None and not has_condition(suggestion, "Succeeded", "Failed"):

                def end(fresh: Object) -> None:
                    for kind, text in (("Running", "Suggestion is not running"), ("DeploymentReady", "Deployment is not ready")):
                        if find_condition(fresh, kind) is not None:
                            set_condition(fresh, kind, "Suggestion is succeeded", text, "False")
                    restart = "Suggestion is succeeded, can't be restarted"
                    set_condition(fresh, "Succeeded", "Experiment is succeeded", restart)

                self._store.update(SUGGESTIONS, key.name, key.namespace, end)
            if not status.get("trialsRunning"):
                return None
        if has_condition(experiment, "Created"):
            self._proceed(key, experiment)
        else:
            optimum: Object = {"observation": {}}
            status |= {"startTime": now(), "completionTime": None, "currentOptimalTrial": optimum}
            set_condition(experiment, "Created", "ExperimentCreated", "Experiment is created")
        if status != obj.get("status"):
            self._store.update(EXPERIMENTS, key.name, key.namespace, lambda fresh: fresh.update(status=status))
        return None

    def _proceed(self, key: Key, experiment: Object) -> None:
        """Bring the status up to date, and the number of active Trials to what is asked for."""
        spec, status = experiment["spec"], experiment["status"]
        trials: list[Standing] = []
        for trial in trials_of(self._store, key):
            uid = trial["metadata"]["uid"]
            if uid not in self._standings or self._standings[uid].trial is not trial:
                state = next((name for name in COUNTED if has_condition(trial, name)), "Pending")
                unfinished = has_condition(trial, "EarlyStopped") and not is_available(trial)
                self._standings[uid] = Standing(trial, state, objective_value(trial), unfinished)
            trials.append(self._standings[uid])
        if trials:  # as in Katib: whoever deletes the only Trial leaves the counters as they were, and gets no new one
            status["trials"] = len(trials)
            for state, (listing, counter) in COUNTED.items():
                names = [entry.trial["metadata"]["name"] for entry in trials if entry.state == state]
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

    def _create_trials(self, key: Key, experiment: Object, trials: Sequence[Standing], missing: int) -> None:
        """Ask for suggestions, and make Trials of all that have none: of the Trials that somebody deleted, too."""
        requests = len(trials) + missing - sum(trial.is_unfinished for trial in trials)
        suggestion = self._store.find(SUGGESTIONS, key.name, key.namespace)
        if suggestion is None:
            metadata, spec = experiment["metadata"], experiment["spec"]
            new_metadata = {"name": metadata["name"], "labels": metadata.get("labels") or {}}
            parts = {part: spec[part] for part in ("algorithm", "earlyStopping", "resumePolicy") if part in spec}
            new = {
                "metadata": {**new_metadata, "ownerReferences": owned_by(experiment)},
                "spec": {**parts, "requests": requests},
            }
            self._store.create(SUGGESTIONS, new, key.namespace)
            return
        if has_condition(suggestion, "Failed"):
            stop_running(experiment)
            set_condition(experiment, "Failed", "ExperimentFailed", "Suggestion has failed")
            return
        self._store.update(SUGGESTIONS, key.name, key.namespace, lambda fresh: fresh["spec"].update(requests=requests))
        names = {entry.trial["metadata"]["name"] for entry in trials}
        for entry in (suggestion.get("status") or {}).get("suggestions", ()):
            if entry["name"] not in names and self._store.find(TRIALS, entry["name"], key.namespace) is None:
                self._store.create(TRIALS, new_trial(experiment, entry), key.namespace)


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


@dataclass(slots=True)
class SuggestionService:
    """What the pod of a suggestion service has in its memory."""

    algorithm: Algorithm
    early_stopping: MedianStop | None
    lost: int = 0  # how many configurations nobody got


class SuggestionReconciler:
    """Reconciles Suggestions: validates the settings once, and answers requests from the algorithm at work."""

    def __init__(self, store: Store, observations: Observations, lose_answers: int | None = None) -> None:
        """`lose_answers`: throw away every so manieth answer of a service, and ask it again.

        So Katib does where the Suggestion was changed while its service answered: the update is refused as a conflict.
        """
        self._store, self._observations = store, observations
        self._lose_answers, self._answers = lose_answers, 0
        self._services: dict[str, SuggestionService] = {}  # by the Suggestion's uid

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for a Suggestion; return when to ask again, if an answer was thrown away.

        Raises:
            ReconcileError: the service raised.
        """
        key = key_of(SUGGESTIONS, obj)
        experiment = self._store.find(EXPERIMENTS, key.name, key.namespace)
        if is_deleting(obj) or experiment is None or has_condition(obj, "Succeeded", "Failed"):
            return None
        if has_condition(obj, "Running"):
            return self._answer(key, obj)
        metric, why = experiment["spec"]["objective"]["objectiveMetricName"], ""

        def reports(trial: str) -> list[str]:
            return [line.value for line in self._observations.read(trial) if line.name == metric]

        try:
            early_stopping = MedianStop(experiment, reports) if "earlyStopping" in experiment["spec"] else None
            self._services[obj["metadata"]["uid"]] = SuggestionService(algorithm_for(experiment), early_stopping)
        except ValueError as error:
            why = f"Validation failed: ValidateAlgorithmSettings Error: {error}"

        def begin(fresh: Object) -> None:
            fresh.setdefault("status", {}).setdefault("startTime", now())
            set_condition(fresh, "Created", "SuggestionCreated", "Suggestion is created")
            set_condition(fresh, "DeploymentReady", "DeploymentReady", "Deployment is ready")
            if not why:
                set_condition(fresh, "Running", "SuggestionRunning", "Suggestion is running")
            else:
                set_condition(fresh, "Failed", "SuggestionFailed", why)

        self._store.update(SUGGESTIONS, key.name, key.namespace, begin)
        return None

    def _answer(self, key: Key, obj: Object) -> float | None:
        """Append the suggestions that are asked for and missing."""
        suggestions: Sequence[Mapping[str, Any]] = obj["status"].get("suggestions", ())
        missing = obj["spec"].get("requests", 0) - len(suggestions)
        if missing <= 0:
            return None
        service, trials = self._services[obj["metadata"]["uid"]], trials_of(self._store, key)
        try:
            ended, first = ended_of(trials), len(suggestions) + service.lost
            configurations = [service.algorithm(first + i, ended) for i in range(missing)]
            rules = service.early_stopping.rules(trials) if service.early_stopping is not None else []
        except ValueError as error:  # the caller of gRPC gets the text of it
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


class JobReconciler:
    """Reconciles Jobs: a pod for each, retries, and the conditions at the end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._retry_at: dict[str, float] = {}  # by uid, time.monotonic()

    def reconcile(self, job: Object) -> float | None:
        """Compare a Job with its pods, count those that have ended, and end it, make another, or return how long to wait."""
        namespace, uid, now_ = job["metadata"]["namespace"], job["metadata"]["uid"], time.monotonic()
        pods = [pod for pod in self._store.oldest_first(PODS, namespace) if pod["metadata"]["labels"].get(UID_LABEL) == uid]
        active, ended = [pod for pod in pods if not is_finished(pod)], [pod for pod in pods if is_finished(pod)]
        verdict: tuple[str, str] | None = None
        if not has_condition(job, "Complete", "Failed") and not is_deleting(job):
            uncounted = [pod["status"]["phase"] for pod in ended if TRACKING in finalizers(pod)]
            counts = {end.lower(): job["status"].get(end.lower(), 0) + uncounted.count(end) for end in ("Succeeded", "Failed")}
            if "Failed" in uncounted:
                pause = FIRST_BACKOFF_SECONDS * 2 ** (counts["failed"] - 1)
                self._retry_at[uid] = now_ + pause
            if counts["succeeded"]:
                verdict = COMPLETIONS_REACHED
            elif counts["failed"] > job["spec"]["backoffLimit"]:
                verdict = BACKOFF_LIMIT_EXCEEDED
            elif not active and self._retry_at.get(uid, now_) <= now_:
                active = self._create_pod(job)

            def write(fresh: Object) -> None:
                status = {"startTime": now(), **fresh["status"], "active": len(active), **counts}
                fresh["status"] = {name: value for name, value in status.items() if value}  # one that is zero is left out
                if verdict == COMPLETIONS_REACHED:
                    set_condition(fresh, "SuccessCriteriaMet", *verdict)
                    set_condition(fresh, "Complete", *verdict)
                    fresh["status"]["completionTime"] = now()
                elif verdict is not None:
                    set_condition(fresh, "FailureTarget", *verdict)
                    set_condition(fresh, "Failed", *verdict)

            self._store.update(JOBS, job["metadata"]["name"], namespace, write)
            if verdict == COMPLETIONS_REACHED:
                self._store.record_event(job, "Normal", "Completed", "Job completed")
            elif verdict is not None:
                self._store.record_event(job, "Warning", *verdict)
        for pod in ended:
            self._store.update(PODS, pod["metadata"]["name"], namespace, lambda fresh: set_finalizer(fresh, TRACKING, False))
        wait = self._retry_at.get(uid, now_) - now_
        return wait if wait > 0 and verdict is None and not active else None

    def _create_pod(self, job: Object) -> list[Object]:
        """Create a pod, with Katib's changes if a Trial owns the Job; none, and another try later, if that is refused."""
        metadata, template = job["metadata"], copied(job["spec"]["template"])  # with the labels that say whose pod it is
        name = f"{metadata['name'][:_LONGEST_PREFIX]}-{random_suffix()}"
        more = {"name": name, "finalizers": [TRACKING], "ownerReferences": owned_by(job)}
        pod: Object = {"metadata": {**template["metadata"], **more}, "spec": template["spec"]}
        trial = owner_of(job, TRIALS)
        try:
            if trial is not None:
                pod = inject(pod, self._store.get(TRIALS, trial, metadata["namespace"]))
            pod = self._store.create(PODS, pod, metadata["namespace"])
        except StatusError as error:
            self._retry_at[metadata["uid"]] = time.monotonic() + REFUSED_POD_SECONDS
            self._store.record_event(job, "Warning", "FailedCreate", f"Error creating: {error.message}")
            return []
        self._store.record_event(job, "Normal", "SuccessfulCreate", f"Created pod: {name}")
        return [pod]


Reconciler = ExperimentReconciler | SuggestionReconciler | TrialReconciler | JobReconciler
OWNERS = {PODS: JOBS, JOBS: TRIALS, TRIALS: EXPERIMENTS, SUGGESTIONS: EXPERIMENTS}
"""Whose controller looks too when an object of a kind has changed."""


def reconcilers(store: Store, observations: Observations, lose_answers: int | None = None) -> dict[Kind, Reconciler]:
    """Return all of them; `lose_answers`: as `SuggestionReconciler` has it."""
    return {
        EXPERIMENTS: ExperimentReconciler(store),
        SUGGESTIONS: SuggestionReconciler(store, observations, lose_answers),
        TRIALS: TrialReconciler(store, observations),
        JOBS: JobReconciler(store),
    }


class Controllers:
    """Runs controllers on a store, from `start` to `stop`."""

    def __init__(self, store: Store, reconcilers: Mapping[Kind, Reconciler]) -> None:
        self._store, self._reconcilers = store, reconcilers
        self._due: dict[Key, float] = {}  # when to look at an object, by time.monotonic(); each at most once
        self._changes = store.subscribe(EXPERIMENTS, *OWNERS)
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def start(self) -> None:
        """Start to reconcile."""
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
            if change is not None:  # all changes first, so that one look serves many of them: of its controller and its owner's
                touched, owner_kind = [key_of(change.kind, change.object)], OWNERS.get(change.kind)
                if owner_kind is not None and (owner := owner_of(change.object, owner_kind)) is not None:
                    touched.append(Key(owner_kind, touched[0].namespace, owner))
                for each in touched:
                    if each.kind in self._reconcilers:
                        self._due[each] = min(self._due.get(each, time.monotonic()), time.monotonic())
            elif key is not None and due is not None and due <= time.monotonic() and not self._changes.is_closed:
                del self._due[key]
                obj = self._store.find(key.kind, key.name, key.namespace)
                if obj is not None and (again := self._reconcile(key.kind, obj)) is not None:
                    self._due.setdefault(key, time.monotonic() + again)

    def _reconcile(self, kind: Kind, obj: Object) -> float | None:
        try:
            return self._reconcilers[kind].reconcile(obj)
        except Exception as error:  # one object's fault must not end the controllers of all others; it is shown, and tried again
            if not isinstance(error, ReconcileError | StatusError):
                log.exception("%s cannot be reconciled", key_of(kind, obj))
            text = str(error) if kind is SUGGESTIONS else f"Failed to reconcile: {error}"
            self._store.record_event(obj, "Warning", "ReconcileError", text)
            return RETRY_SECONDS
