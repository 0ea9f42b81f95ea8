"""The Experiment's status over its Trials: counters, lists, the best trial, and whether the end is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from katib_emulation.objects import Key, Object, copied, has_condition, now, set_condition, stop_running
from katib_emulation.observations import is_available, number
from katib_emulation.suggestions import objective_value

COUNTED = {
    # state of a Trial, in the order in which they count: the first whose condition is True; (its list in the status, its counter)
    "Failed": ("failedTrialList", "trialsFailed"),
    "Succeeded": ("succeededTrialList", "trialsSucceeded"),
    "EarlyStopped": ("earlyStoppedTrialList", "trialsEarlyStopped"),
    "Running": ("runningTrialList", "trialsRunning"),
    "MetricsUnavailable": ("metricsUnavailableTrialList", "trialMetricsUnavailable"),
    "Pending": ("pendingTrialList", "trialsPending"),  # there is no such condition: none is True
}


@dataclass(frozen=True, slots=True)
class Standing:
    """One Trial as its Experiment sees it."""

    trial: Object
    name: str
    state: str  # one of COUNTED
    value: str | None  # the objective's, by its strategy; None: none yet
    is_unfinished: bool  # stopped early, and its observation is not there yet

    @classmethod
    def of(cls, trial: Object) -> Standing:
        """Return the standing of a Trial."""
        state = next((name for name in COUNTED if has_condition(trial, name)), "Pending")
        unfinished = has_condition(trial, "EarlyStopped") and not is_available(trial)
        return cls(trial, trial["metadata"]["name"], state, objective_value(trial), unfinished)


class Standings:
    """Keeps the standings of the Trials of each Experiment."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, Standing]] = {}  # by Experiment, then by the Trial's uid

    def of(self, experiment: Key, trials: Sequence[Object]) -> list[Standing]:
        """Return the standings of all Trials of an Experiment, in their order."""
        known = self._known.get(experiment, {})
        fresh: dict[str, Standing] = {}
        for trial in trials:
            uid = trial["metadata"]["uid"]
            before = known.get(uid)
            fresh[uid] = before if before is not None and before.trial is trial else Standing.of(trial)
        self._known[experiment] = fresh
        return list(fresh.values())

    def forget(self, experiment: Key) -> None:
        """Let go of an Experiment."""
        self._known.pop(experiment, None)


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
    completed = count(status, "Succeeded", "Failed", "EarlyStopped", "MetricsUnavailable")
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
