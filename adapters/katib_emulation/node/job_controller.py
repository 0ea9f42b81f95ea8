"""The Job controller: a pod for each Job, retries, deadlines, and the conditions at the end.

`reconcile` compares a Job with its pods and does what is missing; it may be called at any time and as often as one likes.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from katib_emulation.kinds import JOBS, PODS, TRIALS
from katib_emulation.node import pod_status
from katib_emulation.node.webhook import InjectionError, inject
from katib_emulation.objects import Object, copied, finalizers, find_condition, has_condition, is_deleting, now, owners
from katib_emulation.statuses import ApiError, denied
from katib_emulation.storage.store import Store

FIRST_BACKOFF_SECONDS, LAST_BACKOFF_SECONDS = 10.0, 600.0  # it doubles with each retry
REFUSED_POD_SECONDS = 10.0

BACKOFF_LIMIT_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")
COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")

POD_WEBHOOK = "mutator.pod.katib.kubeflow.org"
TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until its process has ended and its Job has counted it."""

UID_LABEL = "controller-uid"
_LONGEST_PREFIX = 57  # a generated name has 63 characters at most


class JobController:
    """Controls all Jobs of a store. Used by one thread, which calls `reconcile_due` when `next_due` is over."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._timers: list[tuple[float, str, str]] = []  # (when, by time.time(); namespace; Job)
        self._started: dict[str, float] = {}  # by uid, more precise than the status
        self._retry_at: dict[str, float] = {}  # by uid

    def next_due(self) -> float | None:
        """Return in how many seconds `reconcile_due` has to be called."""
        return max(0.0, self._timers[0][0] - time.time()) if self._timers else None

    def reconcile_due(self) -> None:
        """Reconcile the Jobs whose deadline or retry is due."""
        while self._timers and self._timers[0][0] <= time.time():
            _, namespace, name = heapq.heappop(self._timers)
            self.reconcile(namespace, name)

    def forget(self, uid: str) -> None:
        """The Job is gone."""
        self._started.pop(uid, None)
        self._retry_at.pop(uid, None)

    def reconcile(self, namespace: str, name: str) -> None:
        """Bring a Job and its pod to where they belong; a Job that does not exist is no error."""
        try:
            job = self._store.get(JOBS, name, namespace)
        except ApiError:
            return
        pods = self._store.list(PODS, namespace, {UID_LABEL: job["metadata"]["uid"]})
        finished = [pod for pod in pods if pod_status.is_finished(pod)]
        active = [pod for pod in pods if not pod_status.is_finished(pod)]
        if not has_condition(job, "Complete", "Failed") and not is_deleting(job):
            self._continue(job, finished, active)
        for pod in finished:
            self.let_go(pod)

    def let_go(self, pod: Mapping[str, Any]) -> None:
        """Let a pod go that has ended and is counted, or whose Job is gone."""
        if TRACKING in finalizers(pod):
            self._store.update(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"], _without_tracking)

    def _continue(self, job: Object, finished: list[Object], active: list[Object]) -> None:
        """Count the pods that have ended, and decide: end, wait, or another pod."""
        metadata = job["metadata"]
        uncounted = [pod_status.phase_of(pod) for pod in finished if TRACKING in finalizers(pod)]
        counts = {name.lower(): job["status"].get(name.lower(), 0) + uncounted.count(name) for name in ("Succeeded", "Failed")}
        if "Failed" in uncounted:
            exponent = min(counts["failed"] - 1, 20)
            self._retry_at[metadata["uid"]] = time.time() + min(FIRST_BACKOFF_SECONDS * 2**exponent, LAST_BACKOFF_SECONDS)
        verdict = self._verdict(job, **counts)
        if verdict is None and not active:
            if (due := self._retry_at.get(metadata["uid"], 0.0)) > time.time():
                heapq.heappush(self._timers, (due, metadata["namespace"], metadata["name"]))
            else:
                active = self._create_pod(job)

        def write(job: Object) -> None:
            status = job["status"]
            status.setdefault("startTime", now())
            for name, value in {"active": len(active), **counts}.items():
                status.pop(name, None)
                if value:  # one that is zero is left out, as Kubernetes does
                    status[name] = value
            if verdict == COMPLETIONS_REACHED:
                _add_condition(job, "SuccessCriteriaMet", *verdict)
                _add_condition(job, "Complete", *verdict)
                status["completionTime"] = now()
            elif verdict is not None:
                _add_condition(job, "FailureTarget", *verdict)
                if not active:
                    _add_condition(job, "Failed", *verdict)

        job = self._store.update(JOBS, metadata["name"], metadata["namespace"], write) or job
        if verdict is not None:
            self._end(job, verdict, active)

    def _verdict(self, job: Object, succeeded: int, failed: int) -> tuple[str, str] | None:
        """Return (reason, message) of the Job's end, or None if it goes on; watches over its deadline."""
        target = find_condition(job, "FailureTarget")
        if target is not None:
            return target["reason"], target["message"]
        if succeeded:
            return COMPLETIONS_REACHED
        if failed > job["spec"]["backoffLimit"]:
            return BACKOFF_LIMIT_EXCEEDED
        seconds = job["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            metadata = job["metadata"]
            is_new = metadata["uid"] not in self._started
            text = job["status"].get("startTime")  # one that starts now has none yet
            start = datetime.fromisoformat(text).timestamp() if text else time.time()
            due = self._started.setdefault(metadata["uid"], start) + seconds
            if time.time() >= due:
                return DEADLINE_EXCEEDED
            if is_new:
                heapq.heappush(self._timers, (due, metadata["namespace"], metadata["name"]))
        return None

    def _end(self, job: Object, verdict: tuple[str, str], active: list[Object]) -> None:
        """Tell of the end, and delete what still runs; the Job's last condition follows when that has ended."""
        if has_condition(job, "Complete"):
            self._store.record_event(job, "Normal", "Completed", "Job completed")
        elif has_condition(job, "Failed"):
            self._store.record_event(job, "Warning", *verdict)
        for pod in active:
            if not is_deleting(pod):
                self._store.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
                self._store.record_event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")

    def _create_pod(self, job: Object) -> list[Object]:
        metadata = job["metadata"]
        try:
            pod = self._store.create(PODS, _pod_of(job, self._store), metadata["namespace"])
        except ApiError as error:
            self._store.record_event(job, "Warning", "FailedCreate", f"Error creating: {error.message}")
            heapq.heappush(self._timers, (time.time() + REFUSED_POD_SECONDS, metadata["namespace"], metadata["name"]))
            return []
        self._store.record_event(job, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        return [pod]


def _add_condition(job: Object, type_: str, reason: str, message: str) -> None:
    """Append a true condition, unless it is there."""
    if not has_condition(job, type_):
        times = {"lastProbeTime": now(), "lastTransitionTime": now()}
        entry = {"type": type_, "status": "True", **times, "reason": reason, "message": message}
        job["status"].setdefault("conditions", []).append(entry)


def _pod_of(job: Mapping[str, Any], store: Store) -> Object:
    """Return a new pod for a Job, with Katib's changes if a Trial owns the Job.

    Raises:
        ApiError: the webhook refuses it.
    """
    metadata = job["metadata"]
    template = copied(dict(job["spec"]["template"]))  # with the labels that say whose pod it is
    owner = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": metadata["name"], "uid": metadata["uid"]}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "generateName": f"{metadata['name'][:_LONGEST_PREFIX]}-",
            "namespace": metadata["namespace"],
            "finalizers": [TRACKING],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": template["spec"],
    }
    trial = next((other["name"] for other in owners(job) if other["kind"] == TRIALS.kind), None)
    if trial is None:
        return pod
    try:
        return inject(pod, store.get(TRIALS, trial, metadata["namespace"]))
    except (InjectionError, ApiError) as error:
        raise denied(str(error), POD_WEBHOOK) from error


def _without_tracking(pod: Object) -> None:
    pod["metadata"]["finalizers"] = [name for name in finalizers(pod) if name != TRACKING]
