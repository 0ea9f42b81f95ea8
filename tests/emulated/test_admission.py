"""What Katib's webhooks refuse, change and let pass."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from emulated.katib_world import NAMESPACE, Object, experiment_named
from katib_emulation.admission import admit_experiment
from katib_emulation.objects import StatusError

DENIED = 'admission webhook "validator.experiment.katib.kubeflow.org" denied the request: '


def refusal(new: Object, old: Object | None = None, namespace: Object = NAMESPACE) -> StatusError:
    with pytest.raises(StatusError) as caught:
        admit_experiment(new, old, namespace)
    assert caught.value.code == 400
    assert caught.value.reason is None
    return caught.value


def changed(path: str, value: Any) -> Object:
    """Return the accepted experiment with one field replaced; `path` has dots and indices."""
    experiment = experiment_named()
    *way, last = path.split(".")
    at: Any = experiment
    for step in way:
        at = at[int(step)] if step.isdigit() else at.setdefault(step, {})
    at[int(last) if isinstance(at, list) else last] = value
    return experiment


def test_a_sound_experiment_passes_with_katibs_defaults() -> None:
    spec = admit_experiment(experiment_named(parallelTrialCount=None), None, NAMESPACE)["spec"]
    assert spec["parallelTrialCount"] == 3
    assert spec["resumePolicy"] == "Never"
    assert spec["objective"]["metricStrategies"] == [{"name": "accuracy", "value": "max"}]
    assert spec["metricsCollectorSpec"] == {"collector": {"kind": "StdOut"}}
    assert [p["feasibleSpace"]["distribution"] for p in spec["parameters"]] == ["uniform", "uniform"]
    assert spec["trialTemplate"]["successCondition"] == 'status.conditions.#(type=="Complete")#|#(status=="True")#'
    assert spec["trialTemplate"]["failureCondition"] == 'status.conditions.#(type=="Failed")#|#(status=="True")#'


def test_additional_metrics_get_the_objectives_direction_and_given_strategies_stay() -> None:
    objective = {
        "type": "minimize",
        "objectiveMetricName": "loss",
        "additionalMetricNames": ["accuracy"],
        "metricStrategies": [{"name": "loss", "value": "latest"}],
    }
    spec = admit_experiment(experiment_named(objective=objective), None, NAMESPACE)["spec"]
    assert spec["objective"]["metricStrategies"] == [{"name": "loss", "value": "latest"}, {"name": "accuracy", "value": "min"}]


def test_a_file_collector_gets_path_kind_and_format() -> None:
    spec = admit_experiment(experiment_named(metricsCollectorSpec={"collector": {"kind": "File"}}), None, NAMESPACE)["spec"]
    file = {"path": "/var/log/katib/metrics.log", "kind": "File", "format": "TEXT"}
    assert spec["metricsCollectorSpec"]["source"] == {"fileSystemPath": file}


def test_the_given_object_is_not_changed() -> None:
    experiment = experiment_named()
    before = copy.deepcopy(experiment)
    admit_experiment(experiment, None, NAMESPACE)
    assert experiment == before


def test_a_namespace_without_the_label_is_refused() -> None:
    error = refusal(experiment_named(), namespace={"metadata": {"name": "ns", "labels": {}}})
    assert error.message == (
        f'{DENIED}Cannot create the Experiment "e1" in namespace "ns": '
        'the namespace lacks label "katib.kubeflow.org/metrics-collector-injection: enabled"'
    )


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
    (
        "spec.metricsCollectorSpec",
        {"collector": {"kind": "File"}, "source": {"fileSystemPath": {"format": "JSON"}}},
        "the emulated Katib reads TEXT only",
    ),
    ("spec.trialTemplate.primaryContainerName", "", "spec.trialTemplate.primaryContainerName: Required value"),
    ("spec.trialTemplate.trialParameters", [], "spec.trialTemplate.trialParameters: Required value: must be specified"),
    ("spec.trialTemplate.trialSpec", None, "spec.trialTemplate.trialSpec: Required value: must be specified"),
    ("spec.trialTemplate.trialParameters.2.reference", "${trialSpec.Kind}", "does not exist in spec.parameters"),
    ("spec.trialTemplate.trialParameters.0.reference", "rate", "parameter reference rate does not exist in spec.parameters"),
    ("spec.trialTemplate.trialSpec.kind", "PyTorchJob", "the emulated Katib runs Jobs of batch/v1 only"),
    ("spec.trialTemplate.trialSpec.spec.completions", 2, "the emulated Katib runs Jobs of one pod only"),
    ("spec.trialTemplate.successCondition", "status.done", "the emulated Katib understands status.conditions"),
]


@pytest.mark.parametrize(("path", "value", "text"), REFUSED)
def test_a_broken_rule_is_named_with_its_field(path: str, value: Any, text: str) -> None:
    message = refusal(changed(path, value)).message
    assert message.startswith(DENIED)
    assert text in message


def test_several_errors_stand_in_one_text() -> None:
    algorithm = {"algorithmName": "tpe"}
    message = refusal(experiment_named(resumePolicy="Always", algorithm=algorithm)).message
    assert message.startswith(f"{DENIED}[spec.algorithm.algorithmName: Invalid value: ")
    assert ", spec.resumePolicy: Invalid value: " in message
    assert message.endswith("]")


def test_a_field_of_another_type_is_refused_by_the_defaulter() -> None:
    error = refusal(changed("spec.parameters.0.feasibleSpace", "wide"))
    assert error.message.startswith('admission webhook "defaulter.experiment.katib.kubeflow.org" denied the request: json: ')


def test_katib_compares_no_numbers_of_the_space() -> None:
    experiment = changed("spec.parameters.0.feasibleSpace", {"min": "2", "max": "1", "distribution": "logUniform"})
    admit_experiment(experiment, None, NAMESPACE)


def stored(change: Callable[[Object], None] = lambda obj: None) -> Object:
    obj = admit_experiment(experiment_named(), None, NAMESPACE)
    obj["status"] = {"trials": 3}
    change(obj)
    return obj


def test_only_the_budget_may_be_changed() -> None:
    old = stored()
    admit_experiment({**old, "spec": {**old["spec"], "maxTrialCount": 9, "parallelTrialCount": 3}}, old, NAMESPACE)
    message = refusal({**old, "spec": {**old["spec"], "algorithm": {"algorithmName": "grid"}}}, old).message
    assert message.endswith(
        "spec: Forbidden: only spec.parallelTrialCount, spec.maxTrialCount and spec.maxFailedTrialCount are editable"
    )


def test_the_new_maximum_must_exceed_the_trials_there_are() -> None:
    old = stored()
    message = refusal({**old, "spec": {**old["spec"], "maxTrialCount": 3}}, old).message
    assert message.endswith("spec.maxTrialCount: Invalid value: 3: must be greater than status.trials count")


def test_an_update_that_leaves_the_spec_passes_after_the_end() -> None:
    old = stored()
    old["status"]["conditions"] = [{"type": "Failed", "status": "True", "reason": "ExperimentFailed"}]
    admit_experiment({**old, "metadata": {**old["metadata"], "labels": {"x": "y"}}}, old, NAMESPACE)


def test_a_completed_experiment_and_fewer_parallel_trials_are_refused() -> None:
    old = stored()
    assert (
        "the emulated Katib deletes no running trials"
        in refusal({**old, "spec": {**old["spec"], "parallelTrialCount": 1}}, old).message
    )
    old["status"]["conditions"] = [{"type": "Succeeded", "status": "True", "reason": "ExperimentMaxTrialsReached"}]
    assert "Experiment can be restarted if" in refusal({**old, "spec": {**old["spec"], "maxTrialCount": 9}}, old).message
