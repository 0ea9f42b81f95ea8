"""The Job controller: pods for Jobs, retries, deadlines, and the conditions at the end.

`reconcile` compares a Job with its pods and does what is missing; it may be called at any time and as often as one likes.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from katib_emulation.kinds import JOBS, PODS
from katib_emulation.node import job_status, pod_status
from katib_emulation.node.job_pods import TRACKING, UID_LABEL, pod_of, without_tracking
from katib_emulation.objects import Object, finalizers, is_deleting
from katib_emulation.statuses import ApiError
from katib_emulation.storage.store import Store

FIRST_BACKOFF_SECONDS, LAST_BACKOFF_SECONDS = 10.0, 600.0
REFUSED_POD_SECONDS = 10.0


class JobController:
    """Controls all Jobs of a store. Used by one thread, which calls `reconcile_due` when `next_due` is over."""

    def __init__(self, store: Store, backoff_seconds: float = FIRST_BACKOFF_SECONDS) -> None:
        """`backoff_seconds`: before the first retry; it doubles with each."""
        self._store = store
        self._backoff_seconds = backoff_seconds
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
        """Bring a Job and its pods to where they belong; a Job that does not exist is no error."""
        try:
            job = self._store.get(JOBS, name, namespace)
        except ApiError:
            return
        pods = self._store.list(PODS, namespace, {UID_LABEL: job["metadata"]["uid"]})
        finished = [pod for pod in pods if pod_status.is_finished(pod)]
        active = [pod for pod in pods if not pod_status.is_finished(pod)]
        if not job_status.is_finished(job) and not is_deleting(job):
            job = self._continue(job, finished, active)
        for pod in finished:
            self._let_go(pod)

    def let_go_orphan(self, pod: Mapping[str, Any]) -> None:
        """A pod has ended whose Job is gone."""
        self._let_go(pod)

    def _continue(self, job: Object, finished: list[Object], active: list[Object]) -> Object:
        """Count the pods that have ended, and decide: end, wait, or another pod. Returns the Job as it is then."""
        metadata, spec = job["metadata"], job["spec"]
        uncounted = [pod for pod in finished if TRACKING in finalizers(pod)]
        succeeded = job_status.count(job, "succeeded") + sum(pod_status.phase_of(pod) == "Succeeded" for pod in uncounted)
        failed = job_status.count(job, "failed") + sum(pod_status.phase_of(pod) == "Failed" for pod in uncounted)
        completions = spec.get("completions") or spec.get("parallelism") or 1
        if any(pod_status.phase_of(pod) == "Failed" for pod in uncounted):
            exponent = min(failed - 1, 20)
            self._retry_at[metadata["uid"]] = time.time() + min(self._backoff_seconds * 2**exponent, LAST_BACKOFF_SECONDS)
        verdict = self._verdict(job, succeeded, failed, completions)

        def write(job: Object) -> None:
            job_status.begin(job)
            job_status.set_counts(job, active=len(active), succeeded=succeeded, failed=failed)
            if verdict == job_status.COMPLETIONS_REACHED:
                job_status.add_condition(job, job_status.SUCCESS_CRITERIA_MET, *verdict)
                job_status.add_condition(job, job_status.COMPLETE, *verdict)
                job["status"]["completionTime"] = job["status"]["conditions"][-1]["lastTransitionTime"]
            elif verdict is not None:
                job_status.add_condition(job, job_status.FAILURE_TARGET, *verdict)
                if not active:
                    job_status.add_condition(job, job_status.FAILED, *verdict)

        if verdict is not None:
            job = self._write(job, write)
            self._end(job, verdict, active)
            return job
        missing = min(spec.get("parallelism") or 1, completions - succeeded) - len(active)
        wait = self._retry_at.get(metadata["uid"], 0.0) - time.time()
        if missing > 0 and wait > 0:
            heapq.heappush(self._timers, (self._retry_at[metadata["uid"]], metadata["namespace"], metadata["name"]))
            missing = 0
        active += [pod for pod in (self._create_pod(job) for _ in range(missing)) if pod is not None]
        return self._write(job, write)

    def _verdict(self, job: Object, succeeded: int, failed: int, completions: int) -> tuple[str, str] | None:
        """Return (reason, message) of the Job's end, or None if it goes on; watches over its deadline."""
        target = job_status.condition_of(job, job_status.FAILURE_TARGET)
        if target is not None:
            return target["reason"], target["message"]
        if succeeded >= completions:
            return job_status.COMPLETIONS_REACHED
        if failed > job["spec"].get("backoffLimit", job_status.DEFAULT_BACKOFF_LIMIT):
            return job_status.BACKOFF_LIMIT_EXCEEDED
        seconds = job["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            metadata = job["metadata"]
            is_new = metadata["uid"] not in self._started
            due = self._started.setdefault(metadata["uid"], _start_of(job)) + seconds
            if time.time() >= due:
                return job_status.DEADLINE_EXCEEDED
            if is_new:
                heapq.heappush(self._timers, (due, metadata["namespace"], metadata["name"]))
        return None

    def _end(self, job: Object, verdict: tuple[str, str], active: list[Object]) -> None:
        """Tell of the end, and delete what still runs; the Job's last condition follows when that has ended."""
        if job_status.condition_of(job, job_status.COMPLETE):
            self._store.record_event(job, "Normal", "Completed", "Job completed")
        elif job_status.condition_of(job, job_status.FAILED):
            self._store.record_event(job, "Warning", *verdict)
        for pod in active:
            if not is_deleting(pod):
                self._store.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
                self._store.record_event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")

    def _create_pod(self, job: Object) -> Object | None:
        metadata = job["metadata"]
        try:
            pod = self._store.create(PODS, pod_of(job, self._store), metadata["namespace"])
        except ApiError as error:
            self._store.record_event(job, "Warning", "FailedCreate", f"Error creating: {error.message}")
            heapq.heappush(self._timers, (time.time() + REFUSED_POD_SECONDS, metadata["namespace"], metadata["name"]))
            return None
        self._store.record_event(job, "Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        return pod

    def _write(self, job: Object, change: Any) -> Object:
        return self._store.update(JOBS, job["metadata"]["name"], job["metadata"]["namespace"], change) or job

    def _let_go(self, pod: Mapping[str, Any]) -> None:
        if TRACKING in finalizers(pod):
            self._store.update(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"], without_tracking)


def _start_of(job: Mapping[str, Any]) -> float:
    """Return when a Job started; one that starts now has no start time yet."""
    text = (job.get("status") or {}).get("startTime")
    return datetime.fromisoformat(text).timestamp() if text else time.time()
