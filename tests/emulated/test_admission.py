"""What Katib's webhooks refuse, change and let pass."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from emulated.katib_world import NAMESPACE, Object, experiment_named
from katib_emulation.admission import admit_experiment
from katib_emulation.objects import StatusError

DENIED = 'admission webhook "validator.experiment.katib.kubeflow.org" denied the request: '


def refusal(new: Object, old: Object | None = None, namespace: Object = NAMESPACE) -> str:
    with pytest.raises(StatusError) as caught:
        admit_experiment(new, old, namespace)
    assert (caught.value.code, caught.value.reason) == (400, None)
    assert caught.value.message.startswith(DENIED)
    return caught.value.message


def changed(path: str, value: Any, experiment: Object | None = None) -> Object:
    """Return the accepted experiment with one field replaced; `path` has dots and indices."""
    experiment = copy.deepcopy(experiment or experiment_named())
    *way, last = path.split(".")
    at: Any = experiment
    for step in way:
        at = at[int(step)] if step.isdigit() else at.setdefault(step, {})
    at[int(last) if isinstance(at, list) else last] = value
    return experiment


def test_a_sound_experiment_passes_with_katibs_defaults_and_is_not_changed() -> None:
    objective = {
        "type": "minimize",
        "objectiveMetricName": "loss",
        "additionalMetricNames": ["accuracy"],
        "metricStrategies": [{"name": "loss", "value": "latest"}],
    }
    collector = {"collector": {"kind": "File"}}
    given = experiment_named(parallelTrialCount=None, objective=objective, metricsCollectorSpec=collector)
    before = copy.deepcopy(given)
    spec = admit_experiment(given, None, NAMESPACE)["spec"]
    assert given == before
    assert (spec["parallelTrialCount"], spec["resumePolicy"]) == (3, "Never")
    assert spec["objective"]["metricStrategies"] == [{"name": "loss", "value": "latest"}, {"name": "accuracy", "value": "min"}]
    file = {"path": "/var/log/katib/metrics.log", "kind": "File", "format": "TEXT"}
    assert spec["metricsCollectorSpec"]["source"] == {"fileSystemPath": file}
    assert [p["feasibleSpace"]["distribution"] for p in spec["parameters"]] == ["uniform", "uniform"]
    assert spec["trialTemplate"]["successCondition"] == 'status.conditions.#(type=="Complete")#|#(status=="True")#'


def test_a_namespace_without_the_label_is_refused() -> None:
    message = refusal(experiment_named(), namespace={"metadata": {"name": "ns", "labels": {}}})
    assert message.endswith('the namespace lacks label "katib.kubeflow.org/metrics-collector-injection: enabled"')


REFUSED: list[tuple[str, Any, str]] = [
    ("metadata.name", "x" * 41, "and may not be longer than 40 characters. "),
    ("metadata.name", "1a", 'metadata.name: Invalid value: "1a": name must consist of'),
    ("spec.objective.type", "max", 'spec.objective.type: Invalid value: "max": must be minimize or maximize'),
    ("spec.objective.objectiveMetricName", "", "spec.objective.objectiveMetricName: Required value: must be specified"),
    ("spec.algorithm.algorithmName", "tpe", "unable to get Suggestion config data for algorithm tpe: failed to find"),
    ("spec.earlyStopping", {"algorithmName": "x"}, "unable to get EarlyStopping config data for algorithm x"),
    ("spec.resumePolicy", "LongRunning", "the emulated Katib restarts no experiment"),
    ("spec.parameters", [], "spec: Required value: spec.parameters or spec.nasConfig must be specified"),
    ("spec.parameters.0.parameterType", "float", "parameterType: float is not supported"),
    ("spec.parameters.0.feasibleSpace.distribution", "normal", "the emulated Katib draws uniform and logUniform only"),
    ("spec.metricsCollectorSpec.collector", {"kind": "Push"}, "the emulated Katib has the collectors StdOut and File only"),
    ("spec.trialTemplate.primaryContainerName", "", "spec.trialTemplate.primaryContainerName: Required value"),
    ("spec.trialTemplate.trialParameters.2.reference", "${trialSpec.Kind}", "does not exist in spec.parameters"),
    ("spec.trialTemplate.trialSpec.kind", "PyTorchJob", "the emulated Katib runs Jobs of batch/v1 only"),
    ("spec.trialTemplate.successCondition", "status.done", "the emulated Katib understands status.conditions"),
]


@pytest.mark.parametrize(("path", "value", "text"), REFUSED)
def test_a_broken_rule_is_named_with_its_field(path: str, value: Any, text: str) -> None:
    assert text in refusal(changed(path, value))


def test_several_errors_stand_in_one_text() -> None:
    message = refusal(experiment_named(resumePolicy="Always", algorithm={"algorithmName": "tpe"}))
    assert message.startswith(f"{DENIED}[spec.algorithm.algorithmName: Invalid value: ")
    assert ", spec.resumePolicy: Invalid value: " in message


def test_only_the_budget_of_a_running_experiment_may_be_raised() -> None:
    old = {**admit_experiment(experiment_named(), None, NAMESPACE), "status": {"trials": 3}}
    admit_experiment(changed("spec.maxTrialCount", 9, old), old, NAMESPACE)
    for path, value, text in (
        ("spec.algorithm.algorithmName", "grid", "only spec.parallelTrialCount, spec.maxTrialCount and"),
        ("spec.maxTrialCount", 3, "spec.maxTrialCount: Invalid value: 3: must be greater than status.trials count"),
        ("spec.parallelTrialCount", 1, "the emulated Katib deletes no running trials"),
    ):
        assert text in refusal(changed(path, value, old), old)
    old["status"]["conditions"] = [{"type": "Succeeded", "status": "True", "reason": "ExperimentMaxTrialsReached"}]
    admit_experiment(changed("metadata.labels", {"x": "y"}, old), old, NAMESPACE)
    assert "Experiment can be restarted if" in refusal(changed("spec.maxTrialCount", 9, old), old)
