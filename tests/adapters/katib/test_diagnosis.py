"""Each way in which a run can stand still becomes one line with the object, its reason and its message."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.katib.katib_objects import (
    EXPERIMENT,
    RUNNING,
    condition,
    container,
    ended,
    event,
    experiment,
    pod,
    suggestion,
    trial,
)
from tuneoff_adapters.kubernetes.diagnosis import ClusterView, PodObstacle, died_collector, moment_of, obstacles
from tuneoff_adapters.kubernetes.pod_follower import Patience
from tuneoff_adapters.kubernetes.resources import COLLECTOR

NAME = f"{EXPERIMENT}-aaaaaaaa"
OPEN = trial("aaaaaaaa", condition("Running"))
DONE = trial("aaaaaaaa", condition("Running", status="False"), condition("Succeeded", "TrialSucceeded"))
STOPPED = trial("aaaaaaaa", condition("Running"), condition("EarlyStopped"), condition("Failed"))
NO_NODE = condition("PodScheduled", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.", status="False")
QUOTA = 'Error creating: pods "x" is forbidden: exceeded quota: q, requested: limits.cpu=1'


def waiting(reason: str, message: str = "") -> ClusterView:
    held = pod("aaaaaaaa", "Pending", container(waiting={"reason": reason, "message": message}))
    return ClusterView(experiment=experiment(RUNNING), trials={NAME: OPEN}, pods={"p": held})


def view(**changes: Any) -> ClusterView:
    values = {"experiment": experiment(RUNNING), "suggestion": suggestion(condition("Running"))}
    return ClusterView(**{**values, **changes})


CASES = {
    "unschedulable": (
        view(trials={NAME: OPEN}, pods={"p": pod("aaaaaaaa", "Pending", conditions=[NO_NODE])}),
        f"pod {NAME}-x7k2m: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu; ",
    ),
    "image": (waiting("ImagePullBackOff", 'Back-off pulling image "x"'), "ErrImagePull: container training-container: Back-off"),
    "config": (waiting("CreateContainerConfigError", 'configmap "tuneoff" not found'), "CreateContainerConfigError: container"),
    "mount": (
        view(
            trials={NAME: OPEN},
            pods={"p": pod("aaaaaaaa", "Pending", container(waiting={"reason": "ContainerCreating"}))},
            events=(event("Pod", f"{NAME}-x7k2m", "FailedMount", 'configmap "x" not found'),),
        ),
        f'pod {NAME}-x7k2m: FailedMount: configmap "x" not found; ',
    ),
    "quota": (
        view(trials={NAME: OPEN}, events=(event("Job", NAME, "FailedCreate", QUOTA),)),
        f"job {NAME}: FailedCreate: {QUOTA}; ",
    ),
    "refused job": (
        view(trials={NAME: trial("aaaaaaaa", condition("Created"))}, events=(event("Trial", NAME, "ReconcileError", "invalid"),)),
        f"job {NAME}: ReconcileError: invalid; ",
    ),
    "no pod": (view(trials={NAME: OPEN}), f"job {NAME}: NoPod: its trial is running, but has no pod"),
    "settings": (
        view(suggestion=suggestion(condition("Failed", "SuggestionFailed", "Validation failed: gamma"))),
        f"suggestion {EXPERIMENT}: SuggestionFailed: Validation failed: gamma; ",
    ),
    "failed by suggestion": (
        view(
            experiment=experiment(condition("Failed", "ExperimentFailed", "Suggestion has failed")),
            suggestion=suggestion(condition("Failed", "SuggestionFailed", "Validation failed: gamma")),
        ),
        f"suggestion {EXPERIMENT}: SuggestionFailed: Validation failed: gamma; ",
    ),
    "failed": (
        view(experiment=experiment(condition("Failed", "ExperimentFailed", "max failed count has reached"))),
        f"experiment {EXPERIMENT}: ExperimentFailed: max failed count has reached; ",
    ),
    "suggestion not ready": (
        view(suggestion=suggestion(condition("DeploymentReady", "DeploymentNotReady", "Deployment is not ready", "False"))),
        f"suggestion {EXPERIMENT}: DeploymentNotReady: Deployment is not ready; ",
    ),
    "suggestion without pod": (
        view(events=(event("ReplicaSet", f"{EXPERIMENT}-random-5d", "FailedCreate", QUOTA),)),
        f"suggestion {EXPERIMENT}: FailedCreate: {QUOTA}; ",
    ),
    "pruned without metrics": (
        view(trials={NAME: STOPPED}),
        f"trial {NAME}: MetricsUnavailable: it was pruned, and Katib makes no further trial before its metrics are there; ",
    ),
    "exhausted": (
        view(trials={NAME: DONE}, events=(event("Suggestion", EXPERIMENT, "ReconcileError", "unexpected trials"),)),
        f"suggestion {EXPERIMENT}: ReconcileError: 1 trials have ended and no further one comes: unexpected trials; ",
    ),
    "lost node": (
        view(
            trials={NAME: OPEN},
            pods={"p": pod("aaaaaaaa", "Running", container(running={}), conditions=[condition("Ready", status="False")])},
            events=(event("Pod", f"{NAME}-x7k2m", "NodeNotReady", "Node is not ready"),),
        ),
        f"pod {NAME}-x7k2m: NodeNotReady: Node is not ready; ",
    ),
    "no metrics": (
        view(trials={NAME: OPEN}, pods={"p": pod("aaaaaaaa", "Succeeded", ended(0))}),
        f"trial {NAME}: NoEnd: its pod has ended, but Katib does not end the trial; ",
    ),
    "collector hangs": (
        view(trials={NAME: OPEN}, pods={"p": pod("aaaaaaaa", "Running", ended(0), container(COLLECTOR, running={}))}),
        f"pod {NAME}-x7k2m: CollectorRunning: container {COLLECTOR} goes on although training has ended; ",
    ),
    "controller": (
        view(experiment=experiment()),
        f"experiment {EXPERIMENT}: NoStatus: Katib's controller has not looked at it; ",
    ),
}


FINAL = {"settings", "failed by suggestion", "failed"}  # no waiting will change them


@pytest.mark.parametrize("case", CASES)
def test_a_run_that_stands_still_is_told_in_one_line(case: str) -> None:
    seen, words = CASES[case]
    found = obstacles(seen)
    lines = [obstacle.line for obstacle in found]
    assert any(words in line for line in lines), lines
    assert all("\n" not in line for line in lines)
    assert found[0].is_final == any(obstacle.is_final for obstacle in found) == (case in FINAL)


def test_the_newest_event_explains_in_one_line_of_a_bounded_length() -> None:
    events = (event("Job", NAME, "FailedCreate", "old"), event("Job", NAME, "FailedCreate", "new\nline " + "x" * 1000))
    (obstacle,) = obstacles(view(trials={NAME: OPEN}, events=events))
    assert "new line xx" in obstacle.line
    assert len(obstacle.line) < 700


def test_an_event_s_moment_is_found_in_either_of_its_two_places() -> None:
    assert moment_of({"eventTime": "2026-01-02T00:00:00.5Z", "lastTimestamp": None}) == "2026-01-02T00:00:00.5Z"
    assert moment_of({"eventTime": None, "lastTimestamp": "2026-01-01T00:00:00Z"}) == "2026-01-01T00:00:00Z"
    assert moment_of({"metadata": {"creationTimestamp": "2026-01-03T00:00:00Z"}}) == "2026-01-03T00:00:00Z"


@pytest.mark.parametrize(("training", "collector", "is_told"), [(0, 1, True), (0, 0, False), (1, 1, False)])
def test_a_collector_that_died_alone_is_told(training: int, collector: int, is_told: bool) -> None:
    held = pod("aaaaaaaa", "Failed", ended(training), ended(collector, name=COLLECTOR, message="DB manager is gone"))
    told = died_collector(held)
    assert (told is not None) == is_told
    assert told is None or "exit code 1 (DB manager is gone)" in told


def test_a_collector_that_goes_on_after_its_trial_has_ended_ends_no_run() -> None:
    stopped = trial("aaaaaaaa", condition("Running"), condition("EarlyStopped", "TrialEarlyStopped"))
    hanging = pod("aaaaaaaa", "Running", ended(2), container(COLLECTOR, running={}))
    assert not any(found.reason == "CollectorRunning" for found in obstacles(view(trials={NAME: stopped}, pods={"p": hanging})))
    assert any(found.reason == "CollectorRunning" for found in obstacles(view(trials={NAME: OPEN}, pods={"p": hanging})))


def test_a_finding_counts_once_it_has_lasted_without_a_break_or_is_final() -> None:
    def overdue(second: int, *subjects: str, is_final: bool = False) -> str | None:
        seen = [PodObstacle(subject, f"at {second}", "", "w", is_final) for subject in subjects]  # whatever its reason
        return found.subject if (found := patience.overdue(seen, second * 1_000_000_000)) is not None else None

    patience = Patience(10.0)
    assert overdue(0, "a") is None
    assert overdue(9, "a", "b") is None
    assert overdue(10, "b", "a") == "a"
    assert overdue(11, "b") is None
    assert overdue(12, "a", "b") is None  # it was gone: it begins anew
    patience.forget()
    assert overdue(22, "a") is None
    assert overdue(23, "c", is_final=True) == "c"


def test_a_healthy_run_gives_no_finding_nor_does_a_node_that_came_back() -> None:
    told = event("Pod", f"{NAME}-x7k2m", "NodeNotReady", "Node is not ready")
    back = pod("aaaaaaaa", "Running", container(running={}), conditions=[condition("Ready")])
    assert obstacles(view(trials={NAME: OPEN}, pods={"p": back}, events=(told,))) == []
    completed = experiment(condition("Succeeded", "ExperimentMaxTrialsReached"))
    assert obstacles(view(experiment=completed, trials={NAME: DONE}, pods={"p": pod("aaaaaaaa", "Succeeded", ended(0))})) == []


@pytest.mark.parametrize("reason", ["InvalidImageName", "ErrImageNeverPull"])
def test_an_image_that_can_never_be_pulled_is_final(reason: str) -> None:
    assert obstacles(waiting(reason))[0].is_final
