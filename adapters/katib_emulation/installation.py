"""What an installed Katib looks like through the API: definitions, deployments, webhooks and settings, all marked `emulated`."""

from __future__ import annotations

import base64
import json
from typing import Any

from katib_emulation.admission import DEFAULTER, INJECTION_LABEL
from katib_emulation.admission.katib_config import ALGORITHMS, COLLECTORS, EARLY_STOPPINGS
from katib_emulation.kinds import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    EXPERIMENTS,
    KATIB_GROUP,
    KATIB_VERSION,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NO_KATIB,
    VALIDATING_WEBHOOKS,
    Kind,
    served_kinds,
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
    for kind in served_kinds(katib_version):
        if kind.group == KATIB_GROUP:
            store.ensure(CRDS, _definition(kind), keep_status=True)
    for name in COMPONENTS:
        store.ensure(DEPLOYMENTS, _deployment(name), NAMESPACE, keep_status=True)
    store.ensure(CONFIG_MAPS, _config(), NAMESPACE, keep_status=True)
    store.ensure(VALIDATING_WEBHOOKS, _webhooks([_experiment_webhook(VALIDATOR, "/validate-experiment")]), keep_status=True)
    pods = _webhook(POD_MUTATOR, "/mutate-pod", "", "v1", "pods")
    pods["namespaceSelector"] = {"matchLabels": {INJECTION_LABEL: "enabled"}}
    store.ensure(MUTATING_WEBHOOKS, _webhooks([_experiment_webhook(DEFAULTER, "/mutate-experiment"), pods]), keep_status=True)


def _allow_experiments(namespace: Object) -> None:
    """Label Katib's own namespace as its installation does."""
    namespace["metadata"].setdefault("labels", {}).setdefault(INJECTION_LABEL, "enabled")


def _labels(name: str) -> dict[str, str]:
    return {"katib.kubeflow.org/component": name.removeprefix("katib-")}


def _condition(type_: str, reason: str, message: str) -> dict[str, str]:
    time = now()
    return {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time}


def _definition(kind: Kind) -> Object:
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "metadata": {"name": kind.resource, "labels": {"app.kubernetes.io/part-of": "katib-emulated"}},
        "spec": {
            "group": kind.group,
            "names": {**names, "categories": ["all", "kubeflow", "katib"]},
            "scope": "Namespaced",
            "versions": [version],
            "conversion": {"strategy": "None"},
        },
        "status": {
            "acceptedNames": names,
            "storedVersions": [kind.version],
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                _condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
        },
    }


def _deployment(name: str) -> Object:
    container = {"name": name, "image": f"emulated/{name}:{TAG}"}
    template = {"metadata": {"labels": _labels(name)}, "spec": {"containers": [container]}}
    available = _condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    counts = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    return {
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {"replicas": 1, "selector": {"matchLabels": _labels(name)}, "template": template},
        "status": {**counts, "conditions": [available]},
    }


def _config() -> Object:
    """Return katib-config; its YAML is written as JSON, which is YAML too."""
    image = f"emulated/suggestion:{TAG}"
    runtime = {
        "suggestions": [{"algorithmName": name, "image": image} for name in ALGORITHMS],
        "earlyStoppings": [{"algorithmName": name, "image": image} for name in EARLY_STOPPINGS],
        "metricsCollectors": [{"kind": kind, "image": f"emulated/file-metrics-collector:{TAG}"} for kind in COLLECTORS],
    }
    config = {"apiVersion": "config.kubeflow.org/v1beta1", "kind": "KatibConfig", "runtime": runtime}
    return {"metadata": {"name": "katib-config"}, "data": {"katib-config.yaml": json.dumps(config, indent=2)}}


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
