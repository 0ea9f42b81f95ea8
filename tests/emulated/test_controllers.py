"""The life of an experiment under the emulated controllers, and of a Job."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from emulated.katib_world import World, experiment_named, world
from emulated.node_cluster import conditions
from katib_emulation import controllers, node
from katib_emulation.controllers import JobReconciler
from katib_emulation.objects import EVENTS, JOBS, PODS, TRIALS, Store, find_condition, has_condition, is_finished

ENDS = ("Succeeded", "Failed", "Killed", "EarlyStopped", "MetricsUnavailable")


def events(katib: World, reason: str) -> list[str]:
    return [event["message"] for event in katib.store.list(EVENTS, "ns") if event["reason"] == reason]


def test_a_trial_and_its_job_are_rendered_from_the_suggestion(katib: World) -> None:
    katib.submit(experiment_named(parallelTrialCount=1))
    (name,) = katib.wait_jobs(1)
    trial, job = katib.trial(name), katib.store.get(JOBS, name, "ns")
    assert len(name) == len("e1-") + 8
    assert trial["metadata"]["labels"] == {"team": "a", "katib.kubeflow.org/experiment": "e1"}
    assert trial["metadata"]["ownerReferences"][0]["uid"] == katib.experiment()["metadata"]["uid"]
    assert trial["metadata"]["finalizers"] == ["clean-metrics-in-db"]
    values = {a["name"]: a["value"] for a in trial["spec"]["parameterAssignments"]}
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command == ["train", f"--trial={name}", f"--lr={values['lr']}", f"--act={values['act']}"]
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["blockOwnerDeletion"]) == ("Trial", trial["metadata"]["uid"], True)
    assert trial["spec"]["metricsCollector"] == {"collector": {"kind": "StdOut"}}


def test_without_retain_the_job_goes_with_the_trials_end(katib: World) -> None:
    template = {**experiment_named()["spec"]["trialTemplate"], "retain": False}
    katib.submit(experiment_named(trialTemplate=template, maxTrialCount=2))
    katib.run_all(lambda i: ["0.5"])
    katib.wait(lambda: katib.store.list(JOBS, "ns") == [])


def test_a_smaller_goal_is_reached_from_above(katib: World) -> None:
    objective = {"type": "minimize", "objectiveMetricName": "accuracy", "goal": 0.2}
    katib.submit(experiment_named(objective=objective, maxTrialCount=9, parallelTrialCount=1))
    katib.run_all(lambda i: [f"0.{9 - i}"])
    assert katib.experiment()["status"]["trialsSucceeded"] == 8
    assert katib.wait_condition("Succeeded")["reason"] == "ExperimentGoalReached"


def test_a_trial_without_metrics_counts_as_failed_and_lets_katib_start_one_too_many(katib: World) -> None:
    katib.submit(experiment_named(maxTrialCount=3))
    first, second = sorted(katib.wait_jobs(2))
    katib.end_job(first, ["unavailable"])
    third = next(name for name in katib.wait_jobs(2) if name != second)
    katib.end_job(third, ["0.5"])
    katib.wait(lambda: len(katib.trials()) == 4)  # ended 2 of 3, one still runs, and yet one more is started
    katib.end_job(second, ["0.5"])
    assert katib.wait_condition("Succeeded")["reason"] == "ExperimentMaxTrialsReached"
    assert katib.experiment()["status"]["trialMetricsUnavailable"] == 1
    assert len(katib.trials()) == 4


def test_a_value_that_is_no_number_becomes_the_optimum_and_hangs_the_experiment(katib: World) -> None:
    katib.submit(experiment_named(parallelTrialCount=1))
    (name,) = katib.wait_jobs(1)
    katib.end_job(name, ["0.5", ""])
    katib.wait(lambda: has_condition(katib.trial(name), "Succeeded"))
    (next_name,) = katib.wait_jobs(1)  # 0.5 is its maximum: that one is not a trouble
    katib.end_job(next_name, [""])
    (text,) = katib.wait(lambda: events(katib, "ReconcileError"))
    assert text == "rpc error: code = Unknown desc = Exception calling application: could not convert string to float: ''"
    assert katib.experiment()["status"]["currentOptimalTrial"]["bestTrialName"] == next_name
    assert has_condition(katib.experiment(), "Running")
    assert len(katib.trials()) == 2


def test_refused_settings_fail_suggestion_and_experiment(katib: World) -> None:
    given = [{"name": "seed", "value": "1"}]
    katib.submit(experiment_named(algorithm={"algorithmName": "random", "algorithmSettings": given}))
    failed = katib.wait_condition("Failed")
    assert (failed["reason"], failed["message"]) == ("ExperimentFailed", "Suggestion has failed")
    cause = find_condition(katib.suggestion(), "Failed") or {}
    text = "Validation failed: ValidateAlgorithmSettings Error: unknown setting seed for algorithm random"
    assert (cause["reason"], cause["message"]) == ("SuggestionFailed", text)


def test_active_and_all_trials_stay_within_the_budget_whatever_the_trials_do() -> None:
    parallel, dice = 3, random.Random(1)
    alive: dict[str, bool] = {}
    most = 0
    deadline = time.monotonic() + 60
    with world() as katib:
        changes = katib.store.subscribe(TRIALS)
        katib.submit(experiment_named(parallelTrialCount=parallel, maxTrialCount=9))
        while not has_condition(katib.experiment(), "Succeeded"):
            assert time.monotonic() < deadline
            jobs = katib.jobs()
            for name in dice.sample(jobs, dice.randint(0, len(jobs))):
                end = dice.choice(["Complete", "Failed"])
                katib.end_job(name, ["0.5"] if end == "Complete" else [], end)
            while (change := changes.next(0)) is not None:
                alive[change.object["metadata"]["name"]] = not has_condition(change.object, *ENDS)
                most = max(most, sum(alive.values()))
    assert (most, len(alive)) == (parallel, 9)


class Bench:
    """A Job under the Job controller alone; `now` moves only by hand."""

    def __init__(self) -> None:
        self.store = Store()
        self.reconciler = JobReconciler(self.store)
        self.now = 1_000_000.0
        container = {"name": "c", "image": "i", "command": ["true"]}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        self.store.create(JOBS, {"metadata": {"name": "job"}, "spec": {"template": template}}, "default")

    def monotonic(self) -> float:
        return self.now

    def reconcile(self) -> float | None:
        return self.reconciler.reconcile(self.job)

    def active(self) -> list[dict[str, Any]]:
        return [pod for pod in self.store.list(PODS, "default") if not is_finished(pod)]

    def fail_pod(self) -> float | None:
        [pod] = self.active()
        states = {"c": node.terminated(1, None)}
        self.store.update(PODS, pod["metadata"]["name"], "default", lambda pod: node.set_finished(pod, states))
        return self.reconcile()

    @property
    def job(self) -> dict[str, Any]:
        return self.store.get(JOBS, "job", "default")


def test_a_job_without_a_limit_is_retried_six_times_after_the_pauses_of_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    monkeypatch.setattr(controllers, "time", bench)
    bench.reconcile()
    pauses = []
    for _ in range(6):
        due = bench.fail_pod()
        assert due is not None
        bench.now += due - 0.01
        bench.reconcile()
        assert not bench.active()
        bench.now += 0.02
        bench.reconcile()
        pauses.append(round(due, 3))
    assert pauses == [10, 20, 40, 80, 160, 320]
    bench.fail_pod()
    ended = bench.job
    assert (conditions(ended)["Failed"], ended["status"]["failed"]) == ("BackoffLimitExceeded", 7)
    bench.reconcile()
    assert bench.job == ended
