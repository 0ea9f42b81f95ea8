"""The suggestion controller: validates the settings once, and answers requests from the algorithm at work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from katib_emulation.controllers.view import EXPERIMENT_LABEL, ReconcileError, owned_by, place_of, trials_of
from katib_emulation.kinds import DEPLOYMENTS, EXPERIMENTS, SERVICES, SUGGESTIONS
from katib_emulation.objects import (
    Key,
    Object,
    has_condition,
    is_deleting,
    now,
    random_suffix,
    set_condition,
)
from katib_emulation.observations import Observations
from katib_emulation.storage.store import Store
from katib_emulation.suggestions import (
    Algorithm,
    MedianStop,
    algorithm_for,
    told_trials,
    why_refused,
)

NO_POD = {"emulated.katib.kubeflow.org/no-pod": "the emulated server itself makes the suggestions"}


def service_name(suggestion: Mapping[str, Any]) -> str:
    """Return the name of the Deployment and the Service."""
    return f"{suggestion['metadata']['name']}-{suggestion['spec']['algorithm']['algorithmName']}"


def _labels(suggestion: Mapping[str, Any]) -> dict[str, str]:
    name = suggestion["metadata"]["name"]
    return {
        **(suggestion["metadata"].get("labels") or {}),
        "katib.kubeflow.org/deployment": service_name(suggestion),
        EXPERIMENT_LABEL: name,
        "katib.kubeflow.org/suggestion": name,
    }


def _metadata(suggestion: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": service_name(suggestion),
        "labels": _labels(suggestion),
        "annotations": dict(NO_POD),
        "ownerReferences": owned_by(suggestion),
    }


def service(suggestion: Mapping[str, Any]) -> Object:
    """Return the Service."""
    selector = {"katib.kubeflow.org/deployment": service_name(suggestion)}
    ports = [{"name": "katib-api", "port": 6789, "protocol": "TCP"}]
    return {"metadata": _metadata(suggestion), "spec": {"selector": selector, "ports": ports, "type": "ClusterIP"}}


def deployment(suggestion: Mapping[str, Any]) -> Object:
    """Return the Deployment, without replicas and yet available."""
    labels = _labels(suggestion)
    available = {
        "type": "Available",
        "status": "True",
        "reason": "MinimumReplicasAvailable",
        "message": "Deployment has minimum availability.",
        "lastUpdateTime": now(),
        "lastTransitionTime": now(),
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "suggestion", "image": "none"}]}}
    return {
        "metadata": _metadata(suggestion),
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        "status": {"observedGeneration": 1, "conditions": [available]},
    }


LOST_RETRY_SECONDS = 0.01
"""How soon an answer is asked for again that was thrown away."""


@dataclass(slots=True)
class Service:
    """What the pod of a suggestion service has in its memory. `lost`: how many configurations nobody got."""

    algorithm: Algorithm
    early_stopping: MedianStop | None
    lost: int = 0


class SuggestionReconciler:
    """Reconciles Suggestions."""

    def __init__(self, store: Store, observations: Observations, lose_answers: int | None = None) -> None:
        """`lose_answers`: throw away every so manieth answer of a service, and ask it again.

        So Katib does where the Suggestion was changed while its service answered: the update is refused as a conflict.
        """
        self._store = store
        self._observations = observations
        self._lose_answers, self._answers = lose_answers, 0
        self._services: dict[Key, tuple[str, Service]] = {}  # with the Suggestion's uid

    def reconcile(self, obj: Object) -> float | None:
        """Do the next step for a Suggestion.

        Raises:
            ReconcileError: the service raised.
        """
        metadata = obj["metadata"]
        key = Key(SUGGESTIONS, metadata["namespace"], metadata["name"])
        if is_deleting(obj):
            return None
        if has_condition(obj, "Succeeded"):
            self._services.pop(key, None)
            for kind in (DEPLOYMENTS, SERVICES):
                self._store.discard(kind, service_name(obj), metadata["namespace"])
            return None
        if not has_condition(obj, "Created"):
            self._store.update(SUGGESTIONS, *place_of(obj), _mark_created)
            return None
        experiment = self._store.find(EXPERIMENTS, metadata["name"], metadata["namespace"])
        if experiment is None or has_condition(obj, "Failed"):
            return None
        if not has_condition(obj, "Running"):
            self._begin(obj, experiment)
            return None
        return self._answer(key, obj, experiment)

    def forget(self, key: Key) -> None:
        """Let the service of a Suggestion go."""
        self._services.pop(key, None)

    def _begin(self, obj: Object, experiment: Object) -> None:
        """Make what stands for the service's pod, and validate the settings."""
        namespace = obj["metadata"]["namespace"]
        self._store.ensure(SERVICES, service(obj), namespace)
        self._store.ensure(DEPLOYMENTS, deployment(obj), namespace, keep_status=True)
        why = why_refused(experiment)

        def begin(fresh: Object) -> None:
            set_condition(fresh, "DeploymentReady", "DeploymentReady", "Deployment is ready")
            if why is None:
                set_condition(fresh, "Running", "SuggestionRunning", "Suggestion is running")
            else:
                set_condition(fresh, "Failed", "SuggestionFailed", f"Validation failed: {why}")

        self._store.update(SUGGESTIONS, *place_of(obj), begin)

    def _answer(self, key: Key, obj: Object, experiment: Object) -> float | None:
        """Append the suggestions that are asked for and missing; return when to ask again, if they are thrown away."""
        status = obj["status"]
        known: Sequence[Mapping[str, Any]] = status.get("suggestions", ())
        missing = obj["spec"].get("requests", 0) - status.get("suggestionCount", 0)
        if missing <= 0:
            return None
        trials = trials_of(self._store, key)
        try:
            at_work = self._service(key, obj, experiment)
            told = told_trials(trials)
            first = len(known) + at_work.lost
            configurations = [at_work.algorithm.suggest(first + i, told) for i in range(missing)]
            rules = at_work.early_stopping.rules(trials) if at_work.early_stopping is not None else []
        except Exception as error:  # services raise whatever their libraries raise; the caller of gRPC gets the text of it
            text = f"Exception calling application: {error}"
            raise ReconcileError(f"rpc error: code = Unknown desc = {text}") from error
        self._answers += 1
        if self._lose_answers is not None and self._answers % self._lose_answers == 0:
            at_work.lost += missing
            return LOST_RETRY_SECONDS
        names = {entry["name"] for entry in known}
        fresh_entries = []
        for configuration in configurations:
            entry: dict[str, Any] = {
                "name": _new_name(key.name, names),
                "parameterAssignments": [{"name": name, "value": value} for name, value in configuration.items()],
            }
            fresh_entries.append({**entry, "earlyStoppingRules": rules} if rules else entry)

        def append(fresh: Object) -> None:
            fresh["status"]["suggestions"] = [*fresh["status"].get("suggestions", ()), *fresh_entries]
            fresh["status"]["suggestionCount"] = len(fresh["status"]["suggestions"])

        self._store.update(SUGGESTIONS, *place_of(obj), append)
        return None

    def _service(self, key: Key, obj: Object, experiment: Object) -> Service:
        uid = obj["metadata"]["uid"]
        kept = self._services.get(key)
        if kept is not None and kept[0] == uid:
            return kept[1]
        past = [
            {given["name"]: given["value"] for given in entry.get("parameterAssignments", ())}
            for entry in obj["status"].get("suggestions", ())
        ]
        early = MedianStop(experiment, self._reports(experiment)) if "earlyStopping" in experiment["spec"] else None
        made = Service(algorithm_for(experiment, past), early)
        self._services[key] = (uid, made)
        return made

    def _reports(self, experiment: Object) -> Any:
        metric = experiment["spec"]["objective"]["objectiveMetricName"]
        return lambda trial: [line.value for line in self._observations.read(trial) if line.name == metric]


def _mark_created(suggestion: Object) -> None:
    suggestion.setdefault("status", {}).setdefault("startTime", now())
    set_condition(suggestion, "Created", "SuggestionCreated", "Suggestion is created")


def _new_name(experiment: str, taken: set[str]) -> str:
    while (name := f"{experiment}-{random_suffix(8)}") in taken:
        continue
    taken.add(name)
    return name
