"""The life of an experiment under the emulated controllers."""

from __future__ import annotations

from emulated.katib_world import World, experiment_named
from katib_emulation.objects import EVENTS, JOBS, find_condition, has_condition


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
    assert trial["spec"]["runSpec"]["metadata"] == {"name": name, "namespace": "ns"}
    assert job["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "kubeflow.org/v1beta1",
            "kind": "Trial",
            "name": name,
            "uid": trial["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert trial["spec"]["retainRun"] is True
    assert trial["spec"]["metricsCollector"] == {"collector": {"kind": "StdOut"}}
    assert trial["status"]["completionTime"] is None
    assert katib.experiment()["status"]["currentOptimalTrial"] == {"observation": {}}


def test_without_retain_the_job_goes_with_the_trials_end(katib: World) -> None:
    template = {**experiment_named()["spec"]["trialTemplate"], "retain": False}
    katib.submit(experiment_named(trialTemplate=template, maxTrialCount=2))
    katib.run_all(lambda i: ["0.5"])
    katib.wait(lambda: katib.store.list(JOBS, "ns") == [])
    katib.wait(lambda: len(events(katib, "JobDeleted")) == 2)


def test_a_smaller_goal_is_reached_from_above(katib: World) -> None:
    katib.submit(
        experiment_named(
            objective={"type": "minimize", "objectiveMetricName": "accuracy", "goal": 0.2}, maxTrialCount=9, parallelTrialCount=1
        )
    )
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
    end = find_condition(katib.trial(first), "MetricsUnavailable")
    assert end is not None
    assert end["reason"] == "MetricsUnavailable. Job reason: CompletionsReached"


def test_a_value_that_is_no_number_becomes_the_optimum_and_hangs_the_experiment(katib: World) -> None:
    katib.submit(experiment_named(parallelTrialCount=1))
    (name,) = katib.wait_jobs(1)
    katib.end_job(name, ["0.5", ""])
    katib.wait(lambda: has_condition(katib.trial(name), "Succeeded"))
    (next_name,) = katib.wait_jobs(1)  # 0.5 is its maximum: that one is not a trouble
    katib.end_job(next_name, [""])
    katib.wait(lambda: events(katib, "ReconcileError"))
    text = "rpc error: code = Unknown desc = Exception calling application: could not convert string to float: ''"
    assert events(katib, "ReconcileError") == [text]
    assert katib.experiment()["status"]["currentOptimalTrial"]["bestTrialName"] == next_name
    assert has_condition(katib.experiment(), "Running")
    assert len(katib.trials()) == 2


def test_refused_settings_fail_suggestion_and_experiment(katib: World) -> None:
    given = [{"name": "seed", "value": "1"}]
    katib.submit(experiment_named(algorithm={"algorithmName": "random", "algorithmSettings": given}))
    failed = katib.wait_condition("Failed")
    assert (failed["reason"], failed["message"]) == ("ExperimentFailed", "Suggestion has failed")
    cause = find_condition(katib.suggestion(), "Failed")
    assert cause is not None
    assert cause["reason"] == "SuggestionFailed"
    text = "Validation failed: ValidateAlgorithmSettings Error: unknown setting seed for algorithm random"
    assert cause["message"] == text
    assert katib.trials() == []


def test_a_configuration_that_breaks_the_template_is_told_by_events(katib: World) -> None:
    values = {"name": "act", "parameterType": "categorical", "feasibleSpace": {"list": ['"']}}
    parameters = [experiment_named()["spec"]["parameters"][0], values]
    katib.submit(experiment_named(parameters=parameters))
    (text,) = katib.wait(lambda: events(katib, "ReconcileError"))
    assert text.startswith("Failed to reconcile: failed to convert string to unstructured: ")
    assert katib.trials() == []
