"""What a run makes in a cluster, made by hand, for the tests of what is removed."""

from __future__ import annotations

from typing import Any

from emulated.served import Object, Served, experiment
from katib_emulation import objects as kinds

POD = {"restartPolicy": "Never", "containers": [{"name": "training-container", "image": "i", "command": ["true"]}]}
SPECS: dict[kinds.Kind, Object] = {kinds.TRIALS: {}, kinds.JOBS: {"template": {"spec": POD}}, kinds.PODS: POD}


def deploy(
    cluster: Served,
    namespace: str,
    name: str,
    labels: dict[str, str],
    *,
    finalizers: tuple[str, ...] = (),
    conditions: tuple[str, ...] = ("Created", "Running"),
) -> None:
    """Make what a run makes: config map, experiment, suggestion with its pod, a trial with its Job and pod."""
    cluster.store.create(kinds.CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}}, namespace)
    obj = experiment(name)
    obj["metadata"].update(labels=labels, finalizers=list(finalizers))
    obj["status"] = {"conditions": [{"type": kind, "status": "True"} for kind in conditions]}
    top = cluster.store.create(kinds.EXPERIMENTS, obj, namespace)
    suggestion = make_owned(cluster, kinds.SUGGESTIONS, namespace, name, top)
    make_owned(cluster, kinds.PODS, namespace, f"{name}-random-0", suggestion, SPECS[kinds.PODS])
    owner = top
    for kind, child in ((kinds.TRIALS, f"{name}-a"), (kinds.JOBS, f"{name}-a"), (kinds.PODS, f"{name}-a-0")):
        owner = make_owned(cluster, kind, namespace, child, owner, SPECS[kind], labels)


def make_owned(
    cluster: Served,
    kind: kinds.Kind,
    namespace: str,
    name: str,
    owner: Object,
    spec: Object | None = None,
    labels: Object | None = None,
) -> Object:
    metadata = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": owner.get("kind", "Owner"), "name": metadata["name"], "uid": metadata["uid"]}
    reference |= {"controller": True, "blockOwnerDeletion": True}
    thing = {"metadata": {"name": name, "labels": labels or {}, "ownerReferences": [reference]}, "spec": spec or {}}
    return cluster.store.create(kind, thing, namespace)


def hold(cluster: Served, kind: kinds.Kind, namespace: str, name: str, *finalizers: str) -> None:
    """Let these finalizers, and no others, keep an object."""

    def change(obj: dict[str, Any]) -> None:
        obj["metadata"]["finalizers"] = list(finalizers)

    cluster.store.update(kind, name, namespace, change)
