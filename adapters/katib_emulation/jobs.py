"""The Job controller: a pod for each Job, retries, deadlines, and the conditions at the end.

`reconcile` compares a Job with its pods and does what is missing; it may be called at any time and as often as one likes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from katib_emulation.collector import inject
from katib_emulation.errors import StatusError
from katib_emulation.objects import (
    JOBS,
    PODS,
    TRIALS,
    Object,
    copied,
    finalizers,
    find_condition,
    has_condition,
    is_deleting,
    now,
    owned_by,
    owner_of,
    random_suffix,
    set_condition,
    set_finalizer,
)
from katib_emulation.pod_status import is_finished
from katib_emulation.store import Store

FIRST_BACKOFF_SECONDS, LAST_BACKOFF_SECONDS = 10.0, 600.0  # it doubles with each retry
REFUSED_POD_SECONDS = 10.0

BACKOFF_LIMIT_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")
COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")

TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until its process has ended and its Job has counted it."""

UID_LABEL = "controller-uid"
_LONGEST_PREFIX = 57  # a generated name has 63 characters at most


class JobController:
    """Controls all Jobs of a store. Used by one thread, which calls `reconcile_due` when `next_due` is over."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._due: dict[tuple[str, str], float] = {}  # (namespace, Job): when to look at it again, by time.time()
        self._started: dict[str, float] = {}  # by uid, more precise than the status
        self._retry_at: dict[str, float] = {}  # by uid

    def next_due(self) -> float | None:
        """Return in how many seconds `reconcile_due` has to be called."""
        return max(0.0, min(self._due.values()) - time.time()) if self._due else None

    def reconcile_due(self) -> None:
        """Reconcile the Jobs whose deadline or retry is due."""
        for job in [job for job, due in self._due.items() if due <= time.time()]:
            del self._due[job]
            self.reconcile(*job)

    def reconcile(self, namespace: str, name: str) -> None:
        """Bring a Job and its pod to where they belong; a Job that does not exist is not an error."""
        job = self._store.find(JOBS, name, namespace)
        if job is None:
            return
        pods = self._store.list(PODS, namespace, {UID_LABEL: job["metadata"]["uid"]})
        if not has_condition(job, "Complete", "Failed") and not is_deleting(job):
            self._continue(job, pods)
        for pod in filter(is_finished, pods):
            self.let_go(pod)

    def let_go(self, pod: Mapping[str, Any]) -> None:
        """Let a pod go that has ended and is counted, or whose Job is gone."""
        metadata = pod["metadata"]
        self._store.update(PODS, metadata["name"], metadata["namespace"], lambda fresh: set_finalizer(fresh, TRACKING, False))

    def _look_again(self, job: Mapping[str, Any], when: float) -> None:
        key = (job["metadata"]["namespace"], job["metadata"]["name"])
        self._due[key] = min(when, self._due.get(key, when))

    def _continue(self, job: Object, pods: list[Object]) -> None:
        """Count the pods that have ended, and decide: end, wait, or another pod."""
        uid = job["metadata"]["uid"]
        active = [pod for pod in pods if not is_finished(pod)]
        uncounted = [pod["status"]["phase"] for pod in pods if is_finished(pod) and TRACKING in finalizers(pod)]
        counts = {name.lower(): job["status"].get(name.lower(), 0) + uncounted.count(name) for name in ("Succeeded", "Failed")}
        if "Failed" in uncounted:
            exponent = min(counts["failed"] - 1, 20)
            self._retry_at[uid] = time.time() + min(FIRST_BACKOFF_SECONDS * 2**exponent, LAST_BACKOFF_SECONDS)
        verdict = self._verdict(job, **counts)
        if verdict is None and not active:
            if (due := self._retry_at.get(uid, 0.0)) > time.time():
                self._look_again(job, due)
            else:
                active = self._create_pod(job)

        def write(job: Object) -> None:
            status = job["status"]
            status.setdefault("startTime", now())
            for name, value in {"active": len(active), **counts}.items():
                status[name] = value
                if not value:  # one that is zero is left out, as Kubernetes does
                    del status[name]
            if verdict == COMPLETIONS_REACHED:
                set_condition(job, "SuccessCriteriaMet", *verdict)
                set_condition(job, "Complete", *verdict)
                status["completionTime"] = now()
            elif verdict is not None:
                set_condition(job, "FailureTarget", *verdict)
                if not active:
                    set_condition(job, "Failed", *verdict)

        metadata = job["metadata"]
        job = self._store.update(JOBS, metadata["name"], metadata["namespace"], write) or job
        if has_condition(job, "Complete"):
            self._store.record_event(job, "Normal", "Completed", "Job completed")
        elif verdict is not None and has_condition(job, "Failed"):
            self._store.record_event(job, "Warning", *verdict)
        for pod in active if verdict is not None else ():  # the Job's last condition follows when they have ended
            if not is_deleting(pod):
                self._store.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
                self._store.record_event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")

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
            text = job["status"].get("startTime")  # one that starts now has none yet
            start = datetime.fromisoformat(text).timestamp() if text else time.time()
            due = self._started.setdefault(job["metadata"]["uid"], start) + seconds
            if time.time() >= due:
                return DEADLINE_EXCEEDED
            self._look_again(job, due)
        return None

    def _create_pod(self, job: Object) -> list[Object]:
        try:
            metadata = job["metadata"]
            pod = self._store.create(PODS, self._pod_of(job), metadata["namespace"])
        except StatusError as error:
            self._store.record_event(job, "Warning", "FailedCreate", f"Error creating: {error.message}")
            self._look_again(job, time.time() + REFUSED_POD_SECONDS)
            return []
        self._store.record_event(job, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        return [pod]

    def _pod_of(self, job: Mapping[str, Any]) -> Object:
        """Return a new pod for a Job, with Katib's changes if a Trial owns the Job.

        Raises:
            StatusError: 400, the webhook refuses it; 404, the Trial is gone.
        """
        metadata, template = job["metadata"], copied(job["spec"]["template"])  # with the labels that say whose pod it is
        name = f"{metadata['name'][:_LONGEST_PREFIX]}-{random_suffix()}"
        more = {"name": name, "finalizers": [TRACKING], "ownerReferences": owned_by(job)}
        pod: Object = {"metadata": {**template["metadata"], **more}, "spec": template["spec"]}
        trial = owner_of(job, TRIALS)
        if trial is None:
            return pod
        return inject(pod, self._store.get(TRIALS, trial, metadata["namespace"]))
