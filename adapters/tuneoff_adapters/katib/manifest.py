"""What the adapter submits, as plain objects: namespace, config map, Experiment.

Every field that the meaning depends on is set, also where a server's default is the same today: Katib's CRDs have no schema,
so a misspelt field is kept and ignored, and a missing one is filled in by a webhook.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from tuneoff.errors import UnsupportedError
from tuneoff_adapters.katib.plan import GRACE_SECONDS, INJECTION_LABEL, Algorithm, KatibPlan
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.amounts import cpu_thousandths, memory_bytes

Manifest = dict[str, Any]

CONFIG_MAP_BYTES = 1_048_576
TRIAL_NAME = "trial-name"  # a trial parameter; no dimension's name has a dash
# Katib's own pattern of a report, and what tells that a Job is over; its webhook fills these in where they are missing.
METRICS_FORMAT = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
SUCCESS_CONDITION = 'status.conditions.#(type=="Complete")#|#(status=="True")#'
FAILURE_CONDITION = 'status.conditions.#(type=="Failed")#|#(status=="True")#'


def namespace_manifest(plan: KatibPlan) -> Manifest:
    """Return the execution's own namespace, with the label without which Katib refuses the Experiment."""
    labels = {**plan.labels, INJECTION_LABEL: "enabled"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": plan.namespace, "labels": labels}}


def config_map_manifest(plan: KatibPlan) -> Manifest:
    """Return what each pod reads: the trial's context, and how to decode Katib's parameters.

    Raises:
        UnsupportedError: it is larger than a config map may be.
    """
    settings = {**plan.space.to_json(), layout.STOPS: dict(plan.stops), layout.CHECKPOINT_BYTES: plan.checkpoint_bytes}
    data = {
        layout.CONTEXT_KEY: json.dumps(dataclasses.asdict(plan.trial_context)),
        layout.TRANSLATION_KEY: json.dumps(settings, separators=(",", ":"), ensure_ascii=False),
    }
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > CONFIG_MAP_BYTES:
        raise UnsupportedError(
            f"search space, configurations and workload options must fit into a config map of {CONFIG_MAP_BYTES} bytes, "
            f"but have {size}; give fewer configurations, or a smaller grid"
        )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(plan, plan.config_map), "data": data}


def experiment_manifest(plan: KatibPlan) -> Manifest:
    """Return the Experiment."""
    strategy = {"name": layout.OBJECTIVE, "value": "min" if plan.direction == "minimize" else "max"}  # a trial's best epoch
    spec: Manifest = {
        "objective": {
            "type": plan.direction,
            "objectiveMetricName": layout.OBJECTIVE,
            "additionalMetricNames": [],
            "metricStrategies": [strategy],
        },
        "algorithm": _algorithm(plan.algorithm),
        "parallelTrialCount": plan.parallel,
        "maxTrialCount": plan.trials,  # no maxFailedTrialCount: core counts failures, and a scripted stop is one for Katib
        "resumePolicy": "Never",
        "parameters": plan.space.parameters(),
        "metricsCollectorSpec": {
            "collector": {"kind": "File"},
            "source": {
                "fileSystemPath": {"path": layout.METRICS_FILE, "kind": "File", "format": "TEXT"},
                "filter": {"metricsFormat": [METRICS_FORMAT]},
            },
        },
        "trialTemplate": {
            "retain": True,  # else the Job, and the log of its pod, are gone within a second of the end
            "primaryContainerName": layout.CONTAINER,
            "successCondition": SUCCESS_CONDITION,
            "failureCondition": FAILURE_CONDITION,
            "trialParameters": [
                {"name": TRIAL_NAME, "reference": "${trialSpec.Name}"},
                *({"name": name, "reference": name} for name in plan.space.dimensions),
            ],
            "trialSpec": _job(plan),
        },
    }
    if plan.early_stopping is not None:
        spec["earlyStopping"] = _algorithm(plan.early_stopping)
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": _metadata(plan, plan.experiment),
        "spec": spec,
    }


def _metadata(plan: KatibPlan, name: str) -> Manifest:
    return {"name": name, "namespace": plan.namespace, "labels": dict(plan.labels)}


def _algorithm(algorithm: Algorithm) -> Manifest:
    settings = [{"name": name, "value": value} for name, value in algorithm.settings.items()]
    return {"algorithmName": algorithm.name, "algorithmSettings": settings}


def _job(plan: KatibPlan) -> Manifest:
    """Return one trial's Job; Katib gives it its name and namespace."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"labels": dict(plan.labels)},
        "spec": {
            "backoffLimit": 0,  # else a trial that fails is run again, up to six times
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": plan.pod_seconds,
            "template": {"metadata": {"labels": dict(plan.labels)}, "spec": _pod(plan)},
        },
    }


def _pod(plan: KatibPlan) -> Manifest:
    pod: Manifest = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [_container(plan)],
        "volumes": _volumes(plan),
    }
    if plan.service_account is not None:
        pod["serviceAccountName"] = plan.service_account
    if plan.image_pull_secret is not None:
        pod["imagePullSecrets"] = [{"name": plan.image_pull_secret}]
    if plan.node_selector:
        pod["nodeSelector"] = dict(plan.node_selector)
    return pod


def _container(plan: KatibPlan) -> Manifest:
    amounts = _amounts(plan)
    mounts: list[Manifest] = [
        {"name": "tuneoff", "mountPath": layout.CONFIG_DIR, "readOnly": True},
        {"name": "run", "mountPath": layout.RUN_DIR},
    ]
    if plan.data_claim is not None:
        mounts.append({"name": "data", "mountPath": layout.DATA_DIR, "readOnly": True})
    return {
        "name": layout.CONTAINER,
        "image": plan.image,
        "imagePullPolicy": "IfNotPresent",
        "command": _command(plan),
        "env": [{"name": name, "value": value} for name, value in plan.environment.items()],
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "volumeMounts": mounts,
        # of this container alone: Katib's webhook adds another one, whose image runs as root
        "securityContext": {
            "privileged": False,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _amounts(plan: KatibPlan) -> Mapping[str, str]:
    """Return requests and limits at once: CPU in thousandths, memory in bytes."""
    amounts = {"cpu": f"{cpu_thousandths(plan.workers)}m"}
    memory = memory_bytes(plan.workers)
    if memory is not None:
        amounts["memory"] = str(memory)
    return amounts


def _command(plan: KatibPlan) -> list[str]:
    """Return the pod's command; Katib's webhook joins it with blanks into a line of `sh -c`, without any quoting."""
    words = ["python", "-m", layout.POD_MODULE, _placeholder(TRIAL_NAME)]
    return words + [f"{name}={_placeholder(name)}" for name in plan.space.dimensions]


def _placeholder(name: str) -> str:
    return "${trialParameters." + name + "}"


def _volumes(plan: KatibPlan) -> list[Manifest]:
    volumes: list[Manifest] = [
        {"name": "tuneoff", "configMap": {"name": plan.config_map, "defaultMode": 0o444}},
        {"name": "run", "emptyDir": {}},
    ]
    if plan.data_claim is not None:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": plan.data_claim, "readOnly": True}})
    return volumes
