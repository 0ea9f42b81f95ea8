"""What an installed Katib looks like through the API: its deployments and webhooks, all marked `emulated`."""

from __future__ import annotations

import base64
from typing import Any

from katib_emulation.admission import DEFAULTER, INJECTION_LABEL
from katib_emulation.kinds import (
    DEPLOYMENTS,
    EXPERIMENTS,
    KATIB_VERSION,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NO_KATIB,
    VALIDATING_WEBHOOKS,
)
from katib_emulation.objects import Object, now
from katib_emulation.statuses import VALIDATOR
from katib_emulation.storage.store import Store

NAMESPACE = "kubeflow"
TAG = "v0.19.0-emulated"
COMPONENTS = ("katib-controller", "katib-db-manager", "katib-ui")
POD_MUTATOR = "mutator.pod.katib.kubeflow.org"

_CA_BUNDLE = base64.b64encode(b"emulated: no webhook is called over TLS\n").decode()


def install(store: Store, katib_version: str = KATIB_VERSION) -> None:
    """Create what is missing of it; nothing where the version is NO_KATIB."""
    if katib_version == NO_KATIB:
        return
    store.update(NAMESPACES, NAMESPACE, None, _allow_experiments)
    for name in COMPONENTS:
        store.ensure(DEPLOYMENTS, _deployment(name), NAMESPACE, keep_status=True)
    store.ensure(VALIDATING_WEBHOOKS, _webhooks([_experiment_webhook(VALIDATOR, "/validate-experiment")]), keep_status=True)
    pods = _webhook(POD_MUTATOR, "/mutate-pod", "", "v1", "pods")
    pods["namespaceSelector"] = {"matchLabels": {INJECTION_LABEL: "enabled"}}
    store.ensure(MUTATING_WEBHOOKS, _webhooks([_experiment_webhook(DEFAULTER, "/mutate-experiment"), pods]), keep_status=True)


def _allow_experiments(namespace: Object) -> None:
    """Label Katib's own namespace as its installation does."""
    namespace["metadata"].setdefault("labels", {}).setdefault(INJECTION_LABEL, "enabled")


def _labels(name: str) -> dict[str, str]:
    return {"katib.kubeflow.org/component": name.removeprefix("katib-")}


def _deployment(name: str) -> Object:
    container = {"name": name, "image": f"emulated/{name}:{TAG}"}
    template = {"metadata": {"labels": _labels(name)}, "spec": {"containers": [container]}}
    available = {
        "type": "Available",
        "status": "True",
        "reason": "MinimumReplicasAvailable",
        "message": "Deployment has minimum availability.",
        "lastTransitionTime": now(),
    }
    counts = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    return {
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {"replicas": 1, "selector": {"matchLabels": _labels(name)}, "template": template},
        "status": {**counts, "conditions": [available]},
    }


def _webhooks(webhooks: list[dict[str, Any]]) -> Object:
    return {"metadata": {"name": "katib.kubeflow.org"}, "webhooks": webhooks}


def _experiment_webhook(name: str, path: str) -> dict[str, Any]:
    return _webhook(name, path, EXPERIMENTS.group, EXPERIMENTS.version, EXPERIMENTS.plural)


def _webhook(name: str, path: str, group: str, version: str, plural: str) -> dict[str, Any]:
    service = {"name": "katib-controller", "namespace": NAMESPACE, "path": path, "port": 443}
    operations = ["CREATE"] if plural == "pods" else ["CREATE", "UPDATE"]
    rule = {"apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [plural], "scope": "*"}
    return {
        "name": name,
        "clientConfig": {"caBundle": _CA_BUNDLE, "service": service},
        "rules": [rule],
        "failurePolicy": "Ignore" if plural == "pods" else "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    }
