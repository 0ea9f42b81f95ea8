"""A store, a node and the Job controller for tests, without HTTP and Katib: Jobs (and their Trials) run as real processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from katib_emulation.collector import Observations
from katib_emulation.controllers import Controllers, JobReconciler
from katib_emulation.node import Node
from katib_emulation.objects import CONFIG_MAPS, EVENTS, JOBS, PODS, TRIALS, Store
from waiting import until

Object = dict[str, Any]
NAMESPACE = "default"


class NodeCluster:
    """A running node with its pods' files in `folder`."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.store, self.observations = Store(), Observations()
        self.node = Node(self.store, self.observations, folder, **options)
        self.controllers = Controllers(self.store, {JOBS: JobReconciler(self.store)})

    def submit(
        self, name: str = "job", *, command: Sequence[str] = ("true",), trial: Object | None = None, **changes: Any
    ) -> Object:
        """Create a Job; `changes`: of the job's spec, with `container` and `pod` for parts of the template."""
        container = {"name": "training-container", "image": "image", "command": list(command), **changes.pop("container", {})}
        template = {"spec": {"restartPolicy": "Never", "containers": [container], **changes.pop("pod", {})}}
        metadata: Object = {"name": name}
        if trial is not None:
            stored = self.store.create(TRIALS, trial, NAMESPACE)
            owner = {"apiVersion": "kubeflow.org/v1beta1", "kind": "Trial", "name": name, "uid": stored["metadata"]["uid"]}
            metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
        return self.store.create(
            JOBS, {"metadata": metadata, "spec": {"backoffLimit": 0, "template": template, **changes}}, NAMESPACE
        )

    def config_map(self, name: str, **data: str) -> None:
        """Create a config map."""
        self.store.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, NAMESPACE)

    def job(self, name: str = "job") -> Object:
        """Return a Job."""
        return self.store.get(JOBS, name, NAMESPACE)

    def pods(self, job: str = "job") -> list[Object]:
        """Return a Job's pods."""
        return self.store.list(PODS, NAMESPACE, {"job-name": job})

    def events(self, reason: str) -> list[str]:
        """Return the messages of the events with this reason."""
        return [event["message"] for event in self.store.list(EVENTS, NAMESPACE) if event["reason"] == reason]

    def ended(self, name: str = "job") -> Object:
        """Wait until a Job has ended, and return it."""
        return until(lambda: job if {"Complete", "Failed"} & {*conditions(job := self.job(name))} else None)

    def pod_in(self, phase: str, job: str = "job") -> Object:
        """Wait until a pod of a Job is in a phase, and return it."""
        return until(lambda: next((pod for pod in self.pods(job) if pod["status"].get("phase") == phase), None))

    def waiting(self, reason: str, job: str = "job") -> Object:
        """Wait until a container of a Job's pod waits for a reason, and return the state."""

        def state() -> Object | None:
            entries = [entry for pod in self.pods(job) for entry in pod["status"].get("containerStatuses") or ()]
            states: list[Object] = [entry["state"].get("waiting") or {} for entry in entries]
            return next((state for state in states if state.get("reason") == reason), None)

        return until(state)

    def log(self, job: str = "job", container: str | None = None) -> str:
        """Return what the pod of a Job printed."""
        log = self.node.log(NAMESPACE, self.pods(job)[0]["metadata"]["name"], container, False)
        assert isinstance(log, bytes)
        return log.decode()

    def followed(self, pod: str) -> Iterator[bytes]:
        """Return the pieces of a pod's log until its container has ended."""
        pieces = self.node.log(NAMESPACE, pod, None, True)
        assert not isinstance(pieces, bytes)
        return pieces

    def values(self, trial: str = "job") -> list[tuple[str, str]]:
        """Return (name, value) of a trial's observations."""
        return [(observation.name, observation.value) for observation in self.observations.read(trial)]

    def close(self) -> None:
        """Stop everything."""
        self.controllers.stop()
        self.node.stop()
        self.store.close()


@contextlib.contextmanager
def node_cluster(folder: Path, **options: Any) -> Iterator[NodeCluster]:
    """Run a node; `options`: of Node."""
    cluster = NodeCluster(folder, **options)
    cluster.node.start()
    cluster.controllers.start()
    try:
        yield cluster
    finally:
        cluster.close()


def trial_of(name: str = "job", *, kind: str = "File", rules: Sequence[Mapping[str, Any]] = ()) -> Object:
    """Return a Trial as Katib's controller makes it."""
    spec: Object = {
        "objective": {"type": "minimize", "objectiveMetricName": "loss", "additionalMetricNames": ["accuracy"]},
        "primaryContainerName": "training-container",
        "metricsCollector": {"collector": {"kind": kind}},
        **({"earlyStoppingRules": [dict(rule) for rule in rules]} if rules else {}),
    }
    return {"metadata": {"name": name, "labels": {"katib.kubeflow.org/experiment": "experiment"}}, "spec": spec}


def conditions(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the reasons of the true conditions, by type."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return {entry["type"]: entry.get("reason", "") for entry in found if entry["status"] == "True"}


def state_of(pod: Mapping[str, Any], container: str = "training-container") -> Object:
    """Return the state of a container."""
    return next(entry["state"] for entry in pod["status"]["containerStatuses"] if entry["name"] == container)


def script(folder: Path, text: str, name: str = "script.sh") -> list[str]:
    """Write a shell script and return the command that runs it (Katib joins commands unquoted: no blanks may be in them)."""
    path = folder / name
    path.write_text(text)
    return ["sh", str(path)]
