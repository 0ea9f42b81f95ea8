"""The experiment controller: asks for suggestions, makes Trials of them, and keeps the Experiment's status."""

from __future__ import annotations

from collections.abc import Sequence

from katib_emulation.admission.experiment import is_restartable
from katib_emulation.conditions import find_condition, has_condition, remove_condition, set_condition
from katib_emulation.controllers.finalizers import add_finalizer, remove_finalizer
from katib_emulation.controllers.rendering import new_trial
from katib_emulation.controllers.standing import Standing, Standings
from katib_emulation.controllers.summary import count, fail, summarize
from katib_emulation.controllers.trials import release
from katib_emulation.controllers.view import ClusterView, owned_by
from katib_emulation.kinds import EXPERIMENTS, SUGGESTIONS, TRIALS
from katib_emulation.objects import Key, Object, copied, finalizers, is_deleting, now
from katib_emulation.observations import Observations

FINALIZER = "update-prometheus-metrics"
RESTARTING = "Experiment is restarting"


class ExperimentReconciler:
    """Reconciles Experiments."""

    def __init__(self, cluster: ClusterView, observations: Observations) -> None:
        self._cluster = cluster
        self._observations = observations
        self._standings = Standings()

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for an Experiment.

        Raises:
            ReconcileError: a Trial cannot be made of a suggestion.
        """
        if is_deleting(obj):
            if FINALIZER in finalizers(obj):
                self._cluster.update(EXPERIMENTS, obj, lambda fresh: remove_finalizer(fresh, FINALIZER))
            return None
        if FINALIZER not in finalizers(obj):
            self._cluster.update(EXPERIMENTS, obj, lambda fresh: add_finalizer(fresh, FINALIZER))
            return None
        experiment: Object = {**obj, "status": copied(obj.get("status") or {})}  # what may change here is the status
        if has_condition(experiment, "Succeeded", "Failed"):
            self._clean_up_suggestion(experiment)
            if _restarts(experiment):
                remove_condition(experiment, "Succeeded", "Failed")
                set_condition(experiment, "Restarting", "ExperimentRestarting", "Experiment is restarted")
                self._restart_suggestion(experiment)
            elif not experiment["status"].get("trialsRunning"):
                return None
        if has_condition(experiment, "Created"):
            self._proceed(experiment)
        else:
            _mark_created(experiment)
        if experiment["status"] != obj.get("status"):
            status = experiment["status"]
            self._cluster.update(EXPERIMENTS, obj, lambda fresh: fresh.update(status=status))
        return None

    def forget(self, key: Key) -> None:
        """Let go of the standings of the Trials."""
        self._standings.forget(key)

    def event_text(self, error: Exception) -> str:
        """Return the message of the event for a failed step."""
        return f"Failed to reconcile: {error}"

    def _proceed(self, experiment: Object) -> None:
        """Bring the status up to date, and the number of active Trials to what is asked for."""
        metadata, spec = experiment["metadata"], experiment["spec"]
        key = Key(EXPERIMENTS, metadata["namespace"], metadata["name"])
        trials = self._standings.of(key, self._cluster.trials(key.namespace, key.name))
        if trials:  # as in Katib: whoever deletes the only Trial leaves the counters as they were, and gets no new one
            summarize(experiment, trials)
        if has_condition(experiment, "Succeeded", "Failed"):
            return
        status, parallel = experiment["status"], spec["parallelTrialCount"]
        active = count(status, "Pending", "Running")
        completed = count(status, "Succeeded", "Failed", "Killed", "EarlyStopped")  # not MetricsUnavailable, as in Katib
        wanted = parallel
        if "maxTrialCount" in spec:
            wanted = min(spec["maxTrialCount"] - completed, parallel)
        if active > parallel:
            self._delete_newest(experiment, trials, active - parallel)
        elif wanted > active:
            self._create_trials(experiment, trials, wanted - active)

    def _create_trials(self, experiment: Object, trials: Sequence[Standing], missing: int) -> None:
        """Ask for suggestions, and make Trials of all that have none: of the Trials that somebody deleted, too."""
        requests = len(trials) + missing - sum(trial.is_unfinished for trial in trials)
        metadata = experiment["metadata"]
        suggestion = self._cluster.get(SUGGESTIONS, metadata["namespace"], metadata["name"])
        if suggestion is None:
            self._cluster.create_missing(SUGGESTIONS, _new_suggestion(experiment, requests), metadata["namespace"])
            return
        if has_condition(suggestion, "Failed"):
            fail(experiment, "Suggestion has failed")
            return
        if suggestion["spec"].get("requests", 0) != requests:
            self._cluster.update(SUGGESTIONS, suggestion, lambda fresh: fresh["spec"].update(requests=requests))
        suggested = (suggestion.get("status") or {}).get("suggestions", [])
        if len(suggested) > len(trials):
            names = {trial.name for trial in trials}
            for entry in suggested:
                if entry["name"] not in names:
                    self._cluster.create_missing(TRIALS, new_trial(experiment, entry), metadata["namespace"])

    def _delete_newest(self, experiment: Object, trials: Sequence[Standing], surplus: int) -> None:
        """Delete the newest Trials, whatever their state, and their suggestions with them."""
        namespace = experiment["metadata"]["namespace"]
        newest = {trial.name: trial.trial for trial in trials[-surplus:]}
        for name in newest:
            self._cluster.delete(TRIALS, namespace, name)
        suggestion = self._cluster.get(SUGGESTIONS, namespace, experiment["metadata"]["name"])
        if suggestion is not None:
            self._cluster.update(SUGGESTIONS, suggestion, lambda fresh: _drop_suggestions(fresh, set(newest)))
        for trial in newest.values():  # Katib waits here until its other thread has done this
            release(self._cluster, self._observations, trial)

    def _clean_up_suggestion(self, experiment: Object) -> None:
        policy = experiment["spec"]["resumePolicy"]
        suggestion = self._suggestion(experiment)
        if policy == "LongRunning" or suggestion is None or has_condition(suggestion, "Succeeded", "Failed"):
            return
        running = find_condition(suggestion, "Running") or {}
        if (running.get("status"), running.get("reason")) == ("False", RESTARTING):
            return
        kept = ", suggestion volume is not deleted, can be restarted" if policy == "FromVolume" else ", can't be restarted"
        self._cluster.update(SUGGESTIONS, suggestion, lambda fresh: _end_suggestion(fresh, f"Suggestion is succeeded{kept}"))

    def _restart_suggestion(self, experiment: Object) -> None:
        suggestion = self._suggestion(experiment)
        if suggestion is None or experiment["spec"]["resumePolicy"] != "FromVolume":
            return

        def restart(fresh: Object) -> None:
            remove_condition(fresh, "Succeeded")
            set_condition(fresh, "Running", RESTARTING, "Suggestion is not running", "False")

        self._cluster.update(SUGGESTIONS, suggestion, restart)

    def _suggestion(self, experiment: Object) -> Object | None:
        metadata = experiment["metadata"]
        return self._cluster.get(SUGGESTIONS, metadata["namespace"], metadata["name"])


def _restarts(experiment: Object) -> bool:
    most, trials = experiment["spec"].get("maxTrialCount"), experiment["status"].get("trials", 0)
    return is_restartable(experiment) and (most is None or most > trials)


def _mark_created(experiment: Object) -> None:
    status = experiment.setdefault("status", {})
    status.setdefault("startTime", now())
    status.setdefault("completionTime", None)
    status.setdefault("currentOptimalTrial", {"observation": {}})
    set_condition(experiment, "Created", "ExperimentCreated", "Experiment is created")


def _new_suggestion(experiment: Object, requests: int) -> Object:
    metadata, spec = experiment["metadata"], experiment["spec"]
    kept = {part: metadata[part] for part in ("labels", "annotations") if metadata.get(part)}
    asked = {part: spec[part] for part in ("algorithm", "earlyStopping") if part in spec}
    return {
        "metadata": {"name": metadata["name"], **copied(kept), "ownerReferences": owned_by(experiment)},
        "spec": {**copied(asked), "requests": requests, "resumePolicy": spec["resumePolicy"]},
    }


def _drop_suggestions(suggestion: Object, names: set[str]) -> None:
    status = suggestion.setdefault("status", {})
    kept = [entry for entry in status.get("suggestions", ()) if entry["name"] not in names]
    suggestion["spec"]["requests"] = len(kept)
    status["suggestions"], status["suggestionCount"] = kept, len(kept)


def _end_suggestion(suggestion: Object, message: str) -> None:
    reason = "Suggestion is succeeded"
    for kind, text in (("Running", "Suggestion is not running"), ("DeploymentReady", "Deployment is not ready")):
        if find_condition(suggestion, kind) is not None:
            set_condition(suggestion, kind, reason, text, "False")
    set_condition(suggestion, "Succeeded", "Experiment is succeeded", message)
