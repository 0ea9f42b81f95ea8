"""The Experiment's status over its Trials: counters, lists, the best trial, and whether the end is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..conditions import has_condition, set_condition, stop_running
from ..objects import Object, copied, now
from ..suggestions import objective_value
from .observation import number

STATES = (
    # (condition of a Trial, its list in the status, its counter): the first condition that is True counts
    ("Killed", "killedTrialList", "trialsKilled"),
    ("Failed", "failedTrialList", "trialsFailed"),
    ("Succeeded", "succeededTrialList", "trialsSucceeded"),
    ("EarlyStopped", "earlyStoppedTrialList", "trialsEarlyStopped"),
    ("Running", "runningTrialList", "trialsRunning"),
    ("MetricsUnavailable", "metricsUnavailableTrialList", "trialMetricsUnavailable"),
    ("Pending", "pendingTrialList", "trialsPending"),
)


def count(status: Mapping[str, Any], *conditions: str) -> int:
    """Return how many trials a summarized status has under the conditions."""
    return sum(status.get(counter, 0) for condition, _, counter in STATES if condition in conditions)


def summarize(experiment: Object, trials: Sequence[Object]) -> None:
    """Write counters, lists and the best trial into the status, and the end of the Experiment if it is reached."""
    status = experiment["status"]
    _count(status, trials)
    goal_reached = _find_best(experiment, trials)
    if not has_condition(experiment, "Succeeded", "Failed"):
        _conclude(experiment, goal_reached)


def _count(status: dict[str, Any], trials: Sequence[Object]) -> None:
    lists: dict[str, list[str]] = {}
    for trial in trials:
        state = next((name for name, _, _ in STATES if has_condition(trial, name)), "Pending")
        lists.setdefault(state, []).append(trial["metadata"]["name"])
    status.pop("trials", None)
    if trials:
        status["trials"] = len(trials)
    for state, listing, counter in STATES:
        status.pop(listing, None)
        status.pop(counter, None)
        if state in lists:
            status[listing], status[counter] = lists[state], len(lists[state])


def _find_best(experiment: Object, trials: Sequence[Object]) -> bool:
    """Write `currentOptimalTrial`; return whether the goal is reached. A value that is no number makes its trial the best."""
    objective = experiment["spec"]["objective"]
    goal, minimize = objective.get("goal"), objective["type"] == "minimize"
    best: Object | None = None
    best_value = 0.0
    reached = False
    for trial in trials:
        text = objective_value(trial)
        if text is None:
            continue
        value = number(text)
        if value is None:
            best = trial
            continue
        if best is None:
            best, best_value = trial, value
        if (value < best_value) if minimize else (value > best_value):
            best, best_value = trial, value
        if goal is not None and ((best_value <= goal) if minimize else (best_value >= goal)):
            reached = True
    if best is not None:
        experiment["status"]["currentOptimalTrial"] = {
            "bestTrialName": best["metadata"]["name"],
            "parameterAssignments": copied(best["spec"].get("parameterAssignments", [])),
            "observation": copied(best["status"]["observation"]),
        }
    return reached


def _conclude(experiment: Object, goal_reached: bool) -> None:
    spec, status = experiment["spec"], experiment["status"]
    completed = count(status, "Succeeded", "Failed", "Killed", "EarlyStopped", "MetricsUnavailable")
    failed = count(status, "Failed", "MetricsUnavailable")
    most, most_failed = spec.get("maxTrialCount"), spec.get("maxFailedTrialCount")
    if goal_reached:
        succeed(experiment, "ExperimentGoalReached", "Experiment has succeeded because Objective goal has reached")
    elif most_failed is not None and failed != 0 and failed >= most_failed:
        fail(experiment, "Experiment has failed because max failed count has reached")
        status["completionTime"] = now()
    elif most is not None and completed >= most:
        succeed(experiment, "ExperimentMaxTrialsReached", "Experiment has succeeded because max trial count has reached")
    else:
        set_condition(experiment, "Running", "ExperimentRunning", "Experiment is running")


def succeed(experiment: Object, reason: str, message: str) -> None:
    """Mark the Experiment as succeeded."""
    stop_running(experiment)
    set_condition(experiment, "Succeeded", reason, message)
    experiment["status"]["completionTime"] = now()


def fail(experiment: Object, message: str) -> None:
    """Mark the Experiment as failed; Katib leaves the completion time to the caller."""
    stop_running(experiment)
    set_condition(experiment, "Failed", "ExperimentFailed", message)
