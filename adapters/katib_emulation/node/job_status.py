"""The status of a Job as the Job controller writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.objects import Object, now

COMPLETE, FAILED = "Complete", "Failed"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"
DEFAULT_BACKOFF_LIMIT = 6

BACKOFF_LIMIT_EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE_EXCEEDED = ("DeadlineExceeded", "Job was active longer than specified deadline")
COMPLETIONS_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")


def condition_of(job: Mapping[str, Any], type_: str) -> Mapping[str, Any] | None:
    """Return the condition of this type if it is true."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == type_ and entry["status"] == "True"), None)


def is_finished(job: Mapping[str, Any]) -> bool:
    """Whether the Job is complete or has failed."""
    return condition_of(job, COMPLETE) is not None or condition_of(job, FAILED) is not None


def count(job: Mapping[str, Any], name: str) -> int:
    """Return a counter of the status: active, succeeded or failed."""
    return int((job.get("status") or {}).get(name) or 0)


def begin(job: Object) -> None:
    """Set the start time, once."""
    job.setdefault("status", {}).setdefault("startTime", now())


def set_counts(job: Object, **counts: int) -> None:
    """Set counters; one that is zero is left out, as Kubernetes does."""
    status = job.setdefault("status", {})
    for name, value in counts.items():
        status.pop(name, None)
        if value:
            status[name] = value


def add_condition(job: Object, type_: str, reason: str, message: str) -> None:
    """Append a true condition, unless it is there."""
    if condition_of(job, type_) is None:
        time = now()
        entry = {
            "type": type_,
            "status": "True",
            "lastProbeTime": time,
            "lastTransitionTime": time,
            "reason": reason,
            "message": message,
        }
        job.setdefault("status", {}).setdefault("conditions", []).append(entry)
