"""The objects that stand for the pod of a suggestion service: there is none, this process answers. They are ready at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.controllers.view import EXPERIMENT_LABEL, owned_by
from katib_emulation.objects import Object, now

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
