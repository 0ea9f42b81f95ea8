"""The emulated node: scheduler, Job controller and kubelet. One thread decides, and one per pod runs a process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from katib_emulation.kinds import JOBS, PODS
from katib_emulation.node import pod_status
from katib_emulation.node.capacity import Capacity, requests_of, unschedulable_message
from katib_emulation.node.guardian import Guardian
from katib_emulation.node.job_controller import JobController
from katib_emulation.node.pod_files import PodFolders, follow, log_file
from katib_emulation.node.pod_runner import NodeParts, PodRunner
from katib_emulation.objects import Object, copied, is_deleting, owners
from katib_emulation.observations import Observations
from katib_emulation.storage.store import Store
from katib_emulation.storage.table import Change, Subscription

log = logging.getLogger(__name__)

STOP_SECONDS = 1.2
_FOR_EVER = 3600.0


class Node:
    """Turns Job objects into pods and pods into processes of this machine."""

    def __init__(
        self,
        store: Store,
        observations: Observations,
        folder: Path,
        images: Sequence[str] = (),
        cpus: float | None = None,
        memory: int | None = None,
    ) -> None:
        """Make a node that is not yet started.

        `images`: those that it can pull (empty: all); `cpus` processors and `memory` bytes are shared out by the requests of pods
        (None: without end).
        """
        self._store = store
        self._observations = observations
        self._images = tuple(images)
        self._folders = PodFolders(folder)
        self._capacity = Capacity(cpus, memory)
        self._jobs = JobController(store)
        self._runners: dict[str, PodRunner] = {}  # by the pod's uid, until the end of the pod is known
        self._waiting: dict[str, Object] = {}  # pods without a place, in the order of their creation
        self._is_stopping = False
        self._thread = threading.Thread(target=self._decide, name="node", daemon=True)
        self._changes: Subscription | None = None
        self._guardian: Guardian | None = None

    def start(self) -> None:
        """Begin with the Jobs and pods that the store has; pods that ran when a server died are failed."""
        self._guardian = Guardian()
        known = {pod["metadata"]["uid"] for pod in self._store.view(PODS)[1]}
        for files in self._folders.without(known):  # a server that died did not come to it
            files.remove()
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
            ApiError: 404, no such pod; 400, no such container, or it waits to start.
        """
        log = self._log_file(namespace, pod, container)[1]
        return log.read_bytes() if log is not None else b""

    def follow_log(self, namespace: str, pod: str, container: str | None = None) -> Iterator[bytes]:
        """Return pieces of a container's log until it has ended; empty pieces let the caller look whether its client is there.

        Raises:
            ApiError: as `read_log`, at once.
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
                if change is not None:
                    self._follow_job(change) if change.kind is JOBS else self._follow_pod(change)
            except Exception:  # a defect, or a full disk, must not end the thread on which all pods depend
                log.exception("the node failed at %s", change)

    def _follow_job(self, change: Change) -> None:
        metadata = change.object["metadata"]
        if change.type == "DELETED":
            self._jobs.forget(metadata["uid"])
        elif change.previous is None or change.previous["metadata"].get("generation") != metadata.get("generation"):
            self._jobs.reconcile(metadata["namespace"], metadata["name"])

    def _follow_pod(self, change: Change) -> None:
        pod, uid = change.object, change.object["metadata"]["uid"]
        if change.type == "DELETED":
            self._forget(uid, pod)
        elif pod_status.is_finished(pod):
            if change.previous is None or not pod_status.is_finished(change.previous):
                self._runners.pop(uid, None)
                self._free(uid)
                self._tell_job(pod)
            elif is_deleting(pod):
                self._tell_job(pod)
        elif is_deleting(pod):
            self._delete(uid, pod)
        elif uid not in self._runners and uid not in self._waiting:
            self._place(uid, pod)

    def _place(self, uid: str, pod: Object) -> None:
        """Deal with a pod that is not known: new, or of a server that died."""
        if pod_status.phase_of(pod) == "Running":
            self._fail_lost(pod)
        elif pod["spec"].get("nodeName"):
            self._capacity.hold(uid, requests_of(pod))
            self._run(uid, pod)
        else:
            self._schedule(uid, pod)

    def _schedule(self, uid: str, pod: Object) -> None:
        try:
            wanted = requests_of(pod)
        except ValueError as error:
            self._refuse(uid, pod, str(error))
            return
        lacking = self._capacity.lacking(wanted)
        if lacking:
            self._refuse(uid, pod, unschedulable_message(lacking))
            return
        self._waiting.pop(uid, None)
        self._capacity.hold(uid, wanted)
        scheduled = self._change(pod, pod_status.set_scheduled)
        if scheduled is not None:
            self._run(uid, scheduled)

    def _refuse(self, uid: str, pod: Object, message: str) -> None:
        """Let a pod wait for a place; said once, as long as the message stays the same."""
        known = (pod.get("status") or {}).get("conditions") or ()
        is_said = uid in self._waiting and any(condition.get("message") == message for condition in known)
        if not is_said:
            pod = self._change(pod, lambda pod: pod_status.set_unschedulable(pod, message)) or pod
            self._store.record_event(pod, "Warning", "FailedScheduling", message)
        self._waiting[uid] = pod

    def _run(self, uid: str, pod: Object) -> None:
        assert self._guardian is not None
        parts = NodeParts(self._store, self._observations, self._images, self._guardian.mark)
        runner = PodRunner(copied(pod), self._folders.of(uid), parts)
        self._runners[uid] = runner
        runner.start()

    def _free(self, uid: str) -> None:
        """Take back what a pod held, and give it to those who wait, oldest first."""
        self._waiting.pop(uid, None)
        if self._capacity.release(uid):
            for waiting, pod in list(self._waiting.items()):
                self._schedule(waiting, pod)

    def _delete(self, uid: str, pod: Object) -> None:
        runner = self._runners.get(uid)
        if runner is not None:
            runner.delete()
        else:  # it never had a place, or it was lost with a server that died
            self._waiting.pop(uid, None)
            self._change(pod, lambda pod: pod_status.set_finished(pod, {}))

    def _forget(self, uid: str, pod: Object) -> None:
        runner = self._runners.pop(uid, None)
        if runner is not None:
            runner.abandon()  # somebody removed the finalizer by hand
        self._free(uid)
        self._tell_job(pod)
        self._folders.of(uid).remove()

    def _fail_lost(self, pod: Object) -> None:
        started = next((entry["state"].get("running", {}).get("startedAt") for entry in pod["status"]["containerStatuses"]), None)
        states = {spec["name"]: pod_status.terminated(137, started) for spec in pod["spec"]["containers"]}
        self._store.record_event(pod, "Warning", "NodeLost", "the emulated node was restarted while the pod ran")
        self._change(pod, lambda pod: pod_status.set_finished(pod, states))

    def _tell_job(self, pod: Object) -> None:
        owner = next((owner for owner in owners(pod) if owner["kind"] == JOBS.kind), None)
        if owner is not None:
            self._jobs.reconcile(pod["metadata"]["namespace"], owner["name"])
        self._jobs.let_go(pod)

    def _change(self, pod: Object, change: Callable[[Object], None]) -> Object | None:
        return self._store.update(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"], change)
