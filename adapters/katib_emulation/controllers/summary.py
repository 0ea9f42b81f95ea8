"""The Experiment's status over its Trials: counters, lists, the best trial, and whether the end is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from katib_emulation.conditions import has_condition, set_condition, stop_running
from katib_emulation.controllers.observation import number
from katib_emulation.controllers.standing import Standing
from katib_emulation.objects import Object, copied, now

COUNTED = {
    # state of a Trial: (its list in the status, its counter)
    "Killed": ("killedTrialList", "trialsKilled"),
    "Failed": ("failedTrialList", "trialsFailed"),
    "Succeeded": ("succeededTrialList", "trialsSucceeded"),
    "EarlyStopped": ("earlyStoppedTrialList", "trialsEarlyStopped"),
    "Running": ("runningTrialList", "trialsRunning"),
    "MetricsUnavailable": ("metricsUnavailableTrialList", "trialMetricsUnavailable"),
    "Pending": ("pendingTrialList", "trialsPending"),
}


def count(status: Mapping[str, Any], *states: str) -> int:
    """Return how many Trials a summarized status has in the states."""
    return sum(status.get(COUNTED[state][1], 0) for state in states)


def summarize(experiment: Object, trials: Sequence[Standing]) -> None:
    """Write counters, lists and the best trial into the status, and the end of the Experiment if it is reached."""
    _count(experiment["status"], trials)
    goal_reached = _find_best(experiment, trials)
    if not has_condition(experiment, "Succeeded", "Failed"):
        _conclude(experiment, goal_reached)


def _count(status: dict[str, Any], trials: Sequence[Standing]) -> None:
    names: dict[str, list[str]] = {}
    for trial in trials:
        names.setdefault(trial.state, []).append(trial.name)
    status["trials"] = len(trials)
    for state, (listing, counter) in COUNTED.items():
        status.pop(listing, None)
        status.pop(counter, None)
        if state in names:
            status[listing], status[counter] = names[state], len(names[state])


def _find_best(experiment: Object, trials: Sequence[Standing]) -> bool:
    """Write `currentOptimalTrial`; return whether the goal is reached. A value that is no number makes its trial the best."""
    objective = experiment["spec"]["objective"]
    goal, minimize = objective.get("goal"), objective["type"] == "minimize"
    best: Object | None = None
    best_value = 0.0
    reached = False
    for trial in trials:
        if trial.value is None:
            continue
        value = number(trial.value)
        if value is None:
            best = trial.trial
            continue
        if best is None or ((value < best_value) if minimize else (value > best_value)):
            best, best_value = trial.trial, value
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
