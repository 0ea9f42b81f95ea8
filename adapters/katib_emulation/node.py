"""The emulated node: scheduler, Job controller and kubelet. One thread decides, and one per pod runs a process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from katib_emulation import pod_status
from katib_emulation.guardian import NodeGuardian
from katib_emulation.jobs import JobController
from katib_emulation.objects import JOBS, PODS, Object, copied, find_condition, is_deleting, owner_of, set_condition
from katib_emulation.observations import Observations
from katib_emulation.pod_status import is_finished
from katib_emulation.pods import PodFolders, PodRunner, follow, log_file, quantity
from katib_emulation.store import Store, Subscription, WatchEvent

log = logging.getLogger(__name__)

STOP_SECONDS = 1.2
_FOR_EVER = 3600.0


def requests_of(pod: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return what the containers of a pod ask for together (processors, bytes of memory); without a request the limit counts.

    Raises:
        ValueError: a quantity cannot be read.
    """
    total = {"cpu": Decimal(0), "memory": Decimal(0)}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name in total:
            total[name] += quantity(wanted.get(name, 0))
    return total


class Capacity:
    """The processors and the memory of the node, and which pod holds how much of them. Used by one thread."""

    def __init__(self, cpus: float | None, memory: int | None) -> None:
        """`cpus` processors and `memory` bytes; None: without end."""
        self._total = {"cpu": None if cpus is None else Decimal(str(cpus)), "memory": None if memory is None else Decimal(memory)}
        self.held: dict[str, Mapping[str, Decimal]] = {}  # by the pod's uid

    def lacking(self, wanted: Mapping[str, Decimal]) -> list[str]:
        """Return the resources of which too little is free, in the order of the scheduler's message."""
        return [
            name
            for name, total in self._total.items()
            if total is not None and wanted[name] > 0 and wanted[name] > total - sum(held[name] for held in self.held.values())
        ]


class Node:
    """Turns Job objects into pods and pods into processes of this machine.

    Args:
        images: those that it can pull (empty: all).
        cpus, memory: processors and bytes that are shared out by the requests of pods (None: without end).
    """

    def __init__(
        self,
        store: Store,
        observations: Observations,
        folder: Path,
        images: Sequence[str] = (),
        cpus: float | None = None,
        memory: int | None = None,
    ) -> None:
        self._store, self._observations, self._images = store, observations, tuple(images)
        self._folders = PodFolders(folder)
        self._capacity = Capacity(cpus, memory)
        self._jobs = JobController(store)
        self._runners: dict[str, PodRunner] = {}  # by the pod's uid, until the end of the pod is known
        self._waiting: dict[str, Object] = {}  # pods without a place, in the order of their creation
        self._is_stopping = False
        self._thread = threading.Thread(target=self._decide, name="node", daemon=True)
        self._changes: Subscription | None = None
        self._guardian: NodeGuardian | None = None

    def start(self) -> None:
        """Begin with the Jobs and pods that the store has; pods that ran when a server died are failed."""
        self._guardian = NodeGuardian()
        for uid in set(self._folders) - {pod["metadata"]["uid"] for pod in self._store.oldest_first(PODS)}:
            self._folders.of(uid).remove()  # a server that died did not come to it
        self._changes = self._store.subscribe(JOBS, PODS, initial=True)
        self._thread.start()

    def stop(self) -> None:
        """Kill all processes and end all threads; pods and Jobs stay as they are. May be called twice."""
        until = time.monotonic() + STOP_SECONDS
        self._is_stopping = True
        if self._changes is not None:
            self._changes.close()
            self._thread.join(STOP_SECONDS / 3)  # no pod is started any more
        runners = list(self._runners.values())
        for runner in runners:
            runner.abandon()
        for runner in runners:
            runner.join(max(0.0, until - time.monotonic()))
        if self._guardian is not None:
            self._guardian.dismiss()
        self._folders.close()

    def read_log(self, namespace: str, pod: str, container: str | None = None) -> bytes:
        """Return what a container printed so far; nothing for a pod without a node.

        Raises:
            StatusError: 404, no such pod; 400, no such container, or it waits to start.
        """
        _, log = self._log_file(namespace, pod, container)
        return log.read_bytes() if log is not None else b""

    def follow_log(self, namespace: str, pod: str, container: str | None = None) -> Iterator[bytes]:
        """Return pieces of a container's log until it has ended; empty pieces let the caller look whether its client is there.

        Raises:
            StatusError: as `read_log`, at once.
        """
        runner, log = self._log_file(namespace, pod, container)
        if log is None:
            return iter(())
        return follow(log, lambda: runner is None or runner.has_ended.is_set() or self._is_stopping)

    def _log_file(self, namespace: str, name: str, container: str | None) -> tuple[PodRunner | None, Path | None]:
        pod = self._store.get(PODS, name, namespace)
        uid = pod["metadata"]["uid"]
        return self._runners.get(uid), log_file(pod, container, self._folders.of(uid))

    def _decide(self) -> None:
        """Follow all changes of Jobs and pods, until the node stops."""
        assert self._changes is not None
        while not self._is_stopping:
            due = self._jobs.next_due()
            change = self._changes.next(_FOR_EVER if due is None else due)
            if self._is_stopping:
                break
            try:
                self._jobs.reconcile_due()
                if change is None:
                    continue
                if change.kind is not JOBS:
                    self._follow_pod(change)
                    continue
                metadata, before = change.object["metadata"], change.previous
                is_new = before is None or before["metadata"]["generation"] != metadata["generation"]
                if change.type != "DELETED" and is_new:
                    self._jobs.reconcile(metadata["namespace"], metadata["name"])
            except Exception:  # a defect, or a full disk, must not end the thread on which all pods depend
                log.exception("the node failed at %s", change)

    def _follow_pod(self, change: WatchEvent) -> None:
        pod, uid = change.object, change.object["metadata"]["uid"]
        if change.type == "DELETED":
            runner = self._runners.pop(uid, None)
            if runner is not None:
                runner.abandon()  # somebody removed the finalizer by hand
            self._free(uid)
            self._tell_job(pod)
            self._folders.of(uid).remove()
        elif is_finished(pod):
            if change.previous is None or not is_finished(change.previous):
                self._runners.pop(uid, None)
                self._free(uid)
                self._tell_job(pod)
            elif is_deleting(pod):
                self._tell_job(pod)
        elif is_deleting(pod):
            if uid in self._runners:
                self._runners[uid].delete()
            else:  # it never had a place, or it was lost with a server that died
                self._waiting.pop(uid, None)
                self._change(pod, lambda pod: pod_status.set_finished(pod, {}))
        elif uid not in self._runners and uid not in self._waiting:
            self._place(uid, pod)

    def _place(self, uid: str, pod: Object) -> None:
        """Deal with a pod that is not known: new, or of a server that died."""
        if pod["status"]["phase"] == "Running":
            states = {spec["name"]: pod_status.terminated(137, pod["status"]["startTime"]) for spec in pod["spec"]["containers"]}
            self._store.record_event(pod, "Warning", "NodeLost", "the emulated node was restarted while the pod ran")
            self._change(pod, lambda pod: pod_status.set_finished(pod, states))
        elif pod["spec"].get("nodeName"):
            self._capacity.held[uid] = requests_of(pod)
            self._run(uid, pod)
        else:
            self._schedule(uid, pod)

    def _schedule(self, uid: str, pod: Object) -> None:
        """Give a pod its place, or let it wait for one; that is said once, as long as the message stays the same."""
        try:
            wanted = requests_of(pod)
            reasons = ", ".join(f"1 Insufficient {name}" for name in self._capacity.lacking(wanted))
            preemption = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
            message = f"0/1 nodes are available: {reasons}. {preemption}" if reasons else ""
        except ValueError as error:
            wanted, message = {}, str(error)
        if not message:
            self._waiting.pop(uid, None)
            self._capacity.held[uid] = wanted
            scheduled = self._change(pod, pod_status.set_scheduled)
            if scheduled is not None:
                self._run(uid, scheduled)
            return
        scheduled_condition = find_condition(pod, "PodScheduled")
        if uid not in self._waiting or scheduled_condition is None or scheduled_condition["message"] != message:
            why = ("PodScheduled", "Unschedulable", message, "False")
            pod = self._change(pod, lambda pod: set_condition(pod, *why)) or pod
            self._store.record_event(pod, "Warning", "FailedScheduling", message)
        self._waiting[uid] = pod

    def _run(self, uid: str, pod: Object) -> None:
        assert self._guardian is not None
        folder, mark = self._folders.of(uid), self._guardian.mark
        self._runners[uid] = PodRunner(copied(pod), folder, self._store, self._observations, self._images, mark)
        self._runners[uid].start()

    def _free(self, uid: str) -> None:
        """Take back what a pod held, and give it to those who wait, oldest first."""
        self._waiting.pop(uid, None)
        if self._capacity.held.pop(uid, None) is not None:
            for waiting, pod in list(self._waiting.items()):
                self._schedule(waiting, pod)

    def _tell_job(self, pod: Object) -> None:
        owner = owner_of(pod, JOBS)
        if owner is not None:
            self._jobs.reconcile(pod["metadata"]["namespace"], owner)
        self._jobs.let_go(pod)

    def _change(self, pod: Object, change: Callable[[Object], None]) -> Object | None:
        return self._store.update(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"], change)
