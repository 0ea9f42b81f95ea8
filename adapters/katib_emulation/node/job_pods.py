"""The pod that a Job makes of its template, as it comes out of the admission of a cluster with Katib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.kinds import JOBS, TRIALS
from katib_emulation.node.webhook import InjectionError, inject
from katib_emulation.objects import Object, copied, owners
from katib_emulation.statuses import ApiError, denied
from katib_emulation.storage.store import Store

POD_WEBHOOK = "mutator.pod.katib.kubeflow.org"
TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until its process has ended and its Job has counted it."""

UID_LABEL = "controller-uid"
_LONGEST_PREFIX = 57  # a generated name has 63 characters at most


def pod_of(job: Mapping[str, Any], store: Store) -> Object:
    """Return a new pod for a Job, with Katib's changes if a Trial owns the Job.

    Raises:
        ApiError: the webhook refuses it.
    """
    metadata = job["metadata"]
    template = copied(dict(job["spec"]["template"]))
    given = template.get("metadata") or {}
    uid_labels = {UID_LABEL: metadata["uid"], f"batch.kubernetes.io/{UID_LABEL}": metadata["uid"]}
    name_labels = {"job-name": metadata["name"], "batch.kubernetes.io/job-name": metadata["name"]}
    owner = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": metadata["name"], "uid": metadata["uid"]}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **given,
            "generateName": f"{metadata['name'][:_LONGEST_PREFIX]}-",
            "namespace": metadata["namespace"],
            "labels": {**(given.get("labels") or {}), **uid_labels, **name_labels},
            "finalizers": [TRACKING],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 30, **template["spec"]},
    }
    trial = next((owner for owner in owners(job) if owner["kind"] == TRIALS.kind), None)
    if trial is None:
        return pod
    try:
        return inject(pod, store.get(TRIALS, trial["name"], metadata["namespace"]))
    except InjectionError as error:
        raise denied(str(error), POD_WEBHOOK) from error
    except ApiError as error:
        raise denied(error.message, POD_WEBHOOK) from error


def without_tracking(pod: Object) -> None:
    """Let a pod go: remove the finalizer."""
    held = pod["metadata"].get("finalizers") or ()
    pod["metadata"]["finalizers"] = [name for name in held if name != TRACKING]
