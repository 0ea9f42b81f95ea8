"""What is submitted for any pod of ours, as plain objects: namespace, config map, Job.

Every field that the meaning depends on is set, also where a server's default is the same today.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tuneoff.errors import UnsupportedError
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.plan import GRACE_SECONDS, PodPlan, memory_bytes

Manifest = dict[str, Any]

CONFIG_MAP_BYTES = 1_048_576


def namespace_manifest(plan: PodPlan) -> Manifest:
    """Return the execution's own namespace."""
    labels = {**plan.labels, **plan.namespace_labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": plan.namespace, "labels": labels}}


def config_map(plan: PodPlan, settings: Mapping[str, str]) -> Manifest:
    """Return what each pod reads: the trial's context, and the texts of `settings` by their file names.

    Raises:
        UnsupportedError: it is larger than a config map may be.
    """
    data = {layout.CONTEXT_KEY: json.dumps(plan.trial_context.to_json()), **settings}
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > CONFIG_MAP_BYTES:
        raise UnsupportedError(
            f"search space, configurations and workload options must fit into a config map of {CONFIG_MAP_BYTES} bytes, "
            f"but have {size}; give fewer configurations, or a smaller grid"
        )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(plan, plan.config_map), "data": data}


def metadata(plan: PodPlan, name: str) -> Manifest:
    return {"name": name, "namespace": plan.namespace, "labels": dict(plan.labels)}


def job_manifest(
    plan: PodPlan, names: Manifest, command: Sequence[str], seconds: int | None, has_input: bool = False
) -> Manifest:
    """Return the Job of one pod that is started once. `names`: what its metadata has besides the labels.

    `seconds`: the most that it may take, None: no limit. `has_input`: one client can write to its standard input, which ends
    when that client goes.
    """
    job: Manifest = {
        "backoffLimit": 0,  # else a trial that fails is run again, up to six times
        "completions": 1,
        "parallelism": 1,
        "template": {"metadata": {"labels": dict(plan.labels)}, "spec": _pod(plan, command, has_input)},
    }
    if seconds is not None:
        job["activeDeadlineSeconds"] = seconds
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**names, "labels": dict(plan.labels)}, "spec": job}


def _pod(plan: PodPlan, command: Sequence[str], has_input: bool) -> Manifest:
    volumes: list[Manifest] = [
        {"name": "tuneoff", "configMap": {"name": plan.config_map, "defaultMode": 0o444}},
        {"name": "run", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
    ]
    if plan.data_claim is not None:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": plan.data_claim, "readOnly": True}})
    pod: Manifest = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [_container(plan, command, has_input)],
        "volumes": volumes,
    }
    if plan.service_account is not None:
        pod["serviceAccountName"] = plan.service_account
    if plan.image_pull_secret is not None:
        pod["imagePullSecrets"] = [{"name": plan.image_pull_secret}]
    if plan.node_selector:
        pod["nodeSelector"] = dict(plan.node_selector)
    return pod


def _container(plan: PodPlan, command: Sequence[str], has_input: bool) -> Manifest:
    # requests and limits at once: CPU in thousandths, rounded up, as Kubernetes knows no finer unit, memory in bytes
    amounts = {"cpu": f"{math.ceil(Decimal(repr(plan.workers.cpus)) * 1000)}m"}
    memory = memory_bytes(plan.workers)
    if memory is not None:
        amounts["memory"] = str(memory)
    if plan.device_resource is not None:
        amounts[plan.device_resource] = "1"
    mounts: list[Manifest] = [
        {"name": "tuneoff", "mountPath": layout.CONFIG_DIR, "readOnly": True},
        {"name": "run", "mountPath": layout.RUN_DIR},
        {"name": "tmp", "mountPath": layout.TEMPORARY_DIR},
    ]
    if plan.data_claim is not None:
        mounts.append({"name": "data", "mountPath": layout.DATA_DIR, "readOnly": True})
    return {
        "name": layout.CONTAINER,
        "image": plan.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "env": [{"name": name, "value": value} for name, value in plan.environment.items()],
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "volumeMounts": mounts,
        **({"stdin": True, "stdinOnce": True} if has_input else {}),
        # of this container alone: Katib's webhook adds another one, whose image runs as root
        "securityContext": {
            "privileged": False,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
