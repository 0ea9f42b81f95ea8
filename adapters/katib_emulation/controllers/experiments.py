"""The experiment controller: asks for suggestions, makes Trials of them, and keeps the Experiment's status."""

from __future__ import annotations

from collections.abc import Sequence

from katib_emulation.controllers.summary import Standing, Standings, count, fail, summarize
from katib_emulation.controllers.trials import new_trial
from katib_emulation.controllers.view import add_finalizer, owned_by, place_of, remove_finalizer, trials_of
from katib_emulation.kinds import EXPERIMENTS, SUGGESTIONS, TRIALS
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
)
from katib_emulation.storage.store import Store

FINALIZER = "update-prometheus-metrics"


class ExperimentReconciler:
    """Reconciles Experiments."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._standings = Standings()

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for an Experiment.

        Raises:
            ReconcileError: a Trial cannot be made of a suggestion.
        """
        if is_deleting(obj):
            if FINALIZER in finalizers(obj):
                self._store.update(EXPERIMENTS, *place_of(obj), lambda fresh: remove_finalizer(fresh, FINALIZER))
            return None
        if FINALIZER not in finalizers(obj):
            self._store.update(EXPERIMENTS, *place_of(obj), lambda fresh: add_finalizer(fresh, FINALIZER))
            return None
        experiment: Object = {**obj, "status": copied(obj.get("status") or {})}  # what may change here is the status
        if has_condition(experiment, "Succeeded", "Failed"):
            self._end_suggestion(experiment)
            if not experiment["status"].get("trialsRunning"):
                return None
        if has_condition(experiment, "Created"):
            self._proceed(experiment)
        else:
            _mark_created(experiment)
        if experiment["status"] != obj.get("status"):
            status = experiment["status"]
            self._store.update(EXPERIMENTS, *place_of(obj), lambda fresh: fresh.update(status=status))
        return None

    def forget(self, key: Key) -> None:
        """Let go of the standings of the Trials."""
        self._standings.forget(key)

    def _proceed(self, experiment: Object) -> None:
        """Bring the status up to date, and the number of active Trials to what is asked for."""
        metadata, spec = experiment["metadata"], experiment["spec"]
        key = Key(EXPERIMENTS, metadata["namespace"], metadata["name"])
        trials = self._standings.of(key, trials_of(self._store, key))
        if trials:  # as in Katib: whoever deletes the only Trial leaves the counters as they were, and gets no new one
            summarize(experiment, trials)
        if has_condition(experiment, "Succeeded", "Failed"):
            return
        status, parallel = experiment["status"], spec["parallelTrialCount"]
        active = count(status, "Pending", "Running")
        completed = count(status, "Succeeded", "Failed", "EarlyStopped")  # not MetricsUnavailable, as in Katib
        wanted = parallel
        if "maxTrialCount" in spec:
            wanted = min(spec["maxTrialCount"] - completed, parallel)
        if wanted > active:
            self._create_trials(experiment, trials, wanted - active)

    def _create_trials(self, experiment: Object, trials: Sequence[Standing], missing: int) -> None:
        """Ask for suggestions, and make Trials of all that have none: of the Trials that somebody deleted, too."""
        requests = len(trials) + missing - sum(trial.is_unfinished for trial in trials)
        metadata = experiment["metadata"]
        suggestion = self._store.find(SUGGESTIONS, metadata["name"], metadata["namespace"])
        if suggestion is None:
            self._store.ensure(SUGGESTIONS, _new_suggestion(experiment, requests), metadata["namespace"])
            return
        if has_condition(suggestion, "Failed"):
            fail(experiment, "Suggestion has failed")
            return
        if suggestion["spec"].get("requests", 0) != requests:
            self._store.update(SUGGESTIONS, *place_of(suggestion), lambda fresh: fresh["spec"].update(requests=requests))
        suggested = (suggestion.get("status") or {}).get("suggestions", [])
        if len(suggested) > len(trials):
            names = {trial.name for trial in trials}
            for entry in suggested:
                if entry["name"] not in names:
                    self._store.ensure(TRIALS, new_trial(experiment, entry), metadata["namespace"])

    def _end_suggestion(self, experiment: Object) -> None:
        metadata = experiment["metadata"]
        suggestion = self._store.find(SUGGESTIONS, metadata["name"], metadata["namespace"])
        if suggestion is not None and not has_condition(suggestion, "Succeeded", "Failed"):
            self._store.update(SUGGESTIONS, *place_of(suggestion), _end_suggestion)


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


def _end_suggestion(suggestion: Object) -> None:
    reason = "Suggestion is succeeded"
    for kind, text in (("Running", "Suggestion is not running"), ("DeploymentReady", "Deployment is not ready")):
        if find_condition(suggestion, kind) is not None:
            set_condition(suggestion, kind, reason, text, "False")
    set_condition(suggestion, "Succeeded", "Experiment is succeeded", "Suggestion is succeeded, can't be restarted")
