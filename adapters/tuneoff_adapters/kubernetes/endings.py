"""How a trial ended that could not say so itself: from its Trial and Pod objects, in the words of every other framework."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tuneoff.base.processes import ended as how_ended
from tuneoff.base.processes import is_own_end
from tuneoff.record.events.schema import Charged, EndState, Limit
from tuneoff_adapters.kubernetes.api_errors import one_line
from tuneoff_adapters.kubernetes.layout import CONTAINER, EARLY_STOPPED
from tuneoff_adapters.kubernetes.resources import Object, condition, exit_of, has, name_of, terminal

DEADLINE = "DeadlineExceeded"  # the reason of a pod, or within a trial's
OUT_OF_MEMORY = "OOMKilled"  # the reason of a container
_LACKED = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")
_ARGUMENTS = {  # of the image's build, by a module that it brings
    **dict.fromkeys(("optuna", "cmaes", "scipy", "psycopg"), "EXTRAS=optuna,kubernetes"),
    **dict.fromkeys(("torch", "torchvision"), "TORCH_INDEX=https://download.pytorch.org/whl/cpu"),
}
_HIDING_CODE = 1  # of Katib's shell, with stop rules, whatever the code of the program in it
_EVICTIONS = ("Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated", "UnexpectedAdmissionError", "NodeAffinity")


@dataclass(frozen=True, slots=True)
class PodEnding:
    """The end of a trial as an observer saw it. `limit`: of the experiment, for which something killed it."""

    state: EndState
    cause: str | None = None
    charged: Charged | None = None
    exit_code: int | None = None  # negative: a signal; None: not known
    stop_epoch: int | None = None  # the report at which early stopping decided
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class PodLimits:
    """What the pod template limits, for the words of an ending: seconds of a job, bytes of memory."""

    deadline_seconds: float
    memory_bytes: int | None


def ending_of(
    trial: Object | None,
    pod: Object | None,
    limits: PodLimits,
    epochs: int,
    last_line: str = "",
    is_log_whole: bool = False,
    verdict: str = "",
    is_log_broken: bool = False,
) -> PodEnding:
    """Return how a trial ended whose own log has no end.

    `epochs`: how many it reported; `last_line`: the last that its process printed, which often tells why it never began;
    `is_log_whole`: the log was read from its beginning to its end; `verdict`: what Katib's shell said last there;
    `is_log_broken`: events between others are missing.
    """
    rules = _rules(trial)
    if not is_log_broken and trial is not None and (has(trial, "EarlyStopped") or (rules and verdict == EARLY_STOPPED)):
        # The condition may be missing: the service that sets it does not look whether it could.
        return PodEnding("pruned", stop_epoch=decided_at(trial, epochs))
    ended = exit_of(pod, CONTAINER) if pod is not None else None
    if ended is not None and ended.reason == OUT_OF_MEMORY:
        limit = (
            f"more than {limits.memory_bytes / 1e6:g} MB" if limits.memory_bytes is not None else "the node's memory is used up"
        )
        cause = f"out of memory: {limit} (container)"
        return PodEnding("failed", cause, "workload", ended.code, limit="memory")
    failed = condition(trial, "Failed") if trial is not None else None
    reasons = (((pod or {}).get("status") or {}).get("reason"), (failed or {}).get("reason"))
    if any(DEADLINE in str(reason or "") for reason in reasons):
        cause = f"timed out: longer than {limits.deadline_seconds:g} s (the job's activeDeadlineSeconds)"
        return PodEnding("failed", cause, "workload", limit="time")
    if is_log_broken:
        cause = f"pod {name_of(pod or {})}: events are missing in its log, so the result of its training is unknown"
        return PodEnding("failed", cause, "infrastructure")
    if pod is not None and (gone := _lost(pod)) is not None:
        return PodEnding("failed", gone, "infrastructure")
    if ended is None:
        return PodEnding("failed", _unseen(trial, pod), "infrastructure")
    if rules and ended.code == _HIDING_CODE:
        # Katib's shell makes one exit code of all, also of SIGKILL. What the workload does wrong, the trial itself has told.
        cause = f"pod {name_of(pod or {})}: training ended with an unknown exit code (Katib's early stopping hides it)"
        blamed: Charged = "user" if lacking(last_line) else "infrastructure"
        return PodEnding("failed", cause + _last_words(last_line), blamed)
    code = ended.code
    cause = f"pod {name_of(pod or {})}: training {how_ended(code)}"
    if not is_own_end(code):
        return PodEnding("failed", cause, "infrastructure", exit_code=code)
    if code == 0 and not is_log_whole:
        cause += ", but its log has no end: lines of it are missing"
        return PodEnding("failed", cause, "infrastructure", exit_code=code)
    if epochs == 0:
        cause += _last_words(last_line)
    charged: Charged = "user" if epochs == 0 and lacking(last_line) else "workload"
    return PodEnding("failed", cause, charged, exit_code=code)


def lacking(last_line: str) -> str | None:
    """Return which package the image lacks by the last line of a program in it, and the way out; None: it ended otherwise."""
    missing = _LACKED.search(last_line)
    if missing is None:
        return None
    argument = _ARGUMENTS.get(missing[1], "BASE=IMAGE_THAT_HAS_IT")
    return f"the image lacks {missing[1]}: make image ARGS='--build-arg {argument}'"


def decided_at(trial: Object, epochs: int) -> int | None:
    """Return the report at which Katib's rule was tested, the only one of a trial; None if it never came so far."""
    steps = [int(rule.get("startStep") or 0) for rule in _rules(trial)]
    step = min(steps, default=0)
    return step if 0 < step <= epochs else (epochs or None)


def _rules(trial: Object | None) -> list[Object]:
    return ((trial or {}).get("spec") or {}).get("earlyStoppingRules") or []


def _last_words(last_line: str) -> str:
    if (problem := lacking(last_line)) is not None:
        return f"; {problem}"
    return f"; its last line: {one_line(last_line)[:200]}" if last_line else ""


def _lost(pod: Object) -> str | None:
    """Return why the cluster itself took the pod away, or None if it did not."""
    status = pod.get("status") or {}
    reason = str(status.get("reason") or "")
    if reason in _EVICTIONS:
        return f"pod {name_of(pod)}: {reason}: {one_line(status.get('message'))}".rstrip(": ")
    return None


def _unseen(trial: Object | None, pod: Object | None) -> str:
    end = terminal(trial) if trial is not None else None
    words = f"{end.get('reason') or end.get('type')}: {one_line(end.get('message'))}" if end is not None else ""
    if pod is not None:
        return f"pod {name_of(pod)} was deleted or lost before its training container ended{f' ({words})' if words else ''}"
    return f"no pod of it was seen{f': {words}' if words else ''}"
