"""What Katib's webhooks refuse, change and let pass."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from emulated.katib_world import NAMESPACE, Object, experiment_named
from katib_emulation.admission import admit_experiment
from katib_emulation.errors import StatusError

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


def test_a_misspelt_field_is_dropped_without_a_word() -> None:
    spec = admit_experiment(changed("spec.paralelTrialCount", 1), None, NAMESPACE)["spec"]
    assert "paralelTrialCount" not in spec


def test_a_number_where_katib_wants_text_is_refused_by_the_defaulter() -> None:
    error = refusal(changed("spec.parameters.0.feasibleSpace.min", 0.1))
    assert error.message == (
        'admission webhook "defaulter.experiment.katib.kubeflow.org" denied the request: json: cannot unmarshal number into '
        "Go struct field FeasibleSpace.spec.parameters.feasibleSpace.min of type string"
    )


def test_a_namespace_without_the_label_is_refused() -> None:
    error = refusal(experiment_named(), namespace={"metadata": {"name": "ns", "labels": {}}})
    assert error.message == (
        f'{DENIED}Cannot create the Experiment "e1" in namespace "ns": '
        'the namespace lacks label "katib.kubeflow.org/metrics-collector-injection: enabled"'
    )


REFUSED: list[tuple[str, Any, str]] = [
    ("metadata.name", "x" * 41, "and may not be longer than 40 characters. "),
    ("metadata.name", "1a", 'metadata.name: Invalid value: "1a": name must consist of'),
    ("spec.parallelTrialCount", 0, "spec.parallelTrialCount: Invalid value: 0: must be greater than 0"),
    ("spec.parallelTrialCount", 5, "Invalid value: 5: should be less than or equal to spec.maxTrialCount"),
    ("spec.maxTrialCount", -1, "spec.maxTrialCount: Invalid value: -1: must be greater than 0"),
    ("spec.maxFailedTrialCount", -1, "spec.maxFailedTrialCount: Invalid value: -1: should not be less than 0"),
    ("spec.maxFailedTrialCount", 5, "spec.maxFailedTrialCount: Invalid value: 5: should be less than or equal to"),
    ("spec.objective.type", "max", 'spec.objective.type: Invalid value: "max": must be minimize or maximize'),
    ("spec.objective.objectiveMetricName", "", "spec.objective.objectiveMetricName: Required value: must be specified"),
    ("spec.algorithm.algorithmName", "tpe", "unable to get Suggestion config data for algorithm tpe: failed to find"),
    ("spec.earlyStopping", {"algorithmName": "x"}, "unable to get EarlyStopping config data for algorithm x"),
    ("spec.resumePolicy", "LongRunning", "the emulated Katib restarts no experiment"),
    ("spec.parameters", [], "spec: Required value: spec.parameters or spec.nasConfig must be specified"),
    ("spec.parameters.0.parameterType", "float", "parameterType: float is not supported"),
    ("spec.parameters.0.feasibleSpace.distribution", "normal", "the emulated Katib draws uniform and logUniform only"),
    ("spec.parameters.0.feasibleSpace.list", ["1"], "feasibleSpace.list is not supported for parameterType: double"),
    ("spec.parameters.0.feasibleSpace.max", "", "feasibleSpace.max or feasibleSpace.min must be specified"),
    ("spec.parameters.1.feasibleSpace.step", "1", "feasibleSpace .max, .min and .step is not supported"),
    ("spec.metricsCollectorSpec.collector", {"kind": "Push"}, "the emulated Katib has the collectors StdOut and File only"),
    (
        "spec.metricsCollectorSpec",
        {"collector": {"kind": "File"}, "source": {"fileSystemPath": {"format": "JSON"}}},
        "the emulated Katib reads TEXT only",
    ),
    (
        "spec.metricsCollectorSpec",
        {"collector": {"kind": "File"}, "source": {"fileSystemPath": {"path": "metrics.log"}}},
        "file path where metrics file exists is required",
    ),
    (
        "spec.metricsCollectorSpec",
        {"collector": {"kind": "File"}, "source": {"filter": {"metricsFormat": ["(a)=1"]}}},
        "two top subexpressions are required",
    ),
    ("spec.trialTemplate.primaryContainerName", "", "spec.trialTemplate.primaryContainerName: Required value"),
    ("spec.trialTemplate.trialParameters", [], "spec.trialTemplate.trialParameters: Required value: must be specified"),
    ("spec.trialTemplate.trialSpec", None, "spec.trialTemplate.trialSpec: Required value: must be specified"),
    ("spec.trialTemplate.trialParameters.1.name", "lr", "parameter name: lr in spec.trialParameters not found"),
    ("spec.trialTemplate.trialParameters.2.reference", "${trialSpec.Kind}", "does not exist in spec.parameters"),
    ("spec.trialTemplate.trialParameters.0.reference", "rate", "parameter reference rate does not exist in spec.parameters"),
    ("spec.trialTemplate.trialParameters.0.name", "rate", "parameter name: rate in spec.trialParameters not found"),
    ("spec.trialTemplate.trialSpec.metadata", {"name": "x"}, "metadata.name and metadata.namespace in spec.trialTemplate must"),
    ("spec.trialTemplate.trialSpec.kind", "PyTorchJob", "the emulated Katib runs Jobs of batch/v1 only"),
    ("spec.trialTemplate.trialSpec.spec.completions", 2, "the emulated Katib runs Jobs of one pod only"),
    ("spec.trialTemplate.trialSpec.spec.backofLimit", 0, "unable to convert: /spec/backofLimit - 0 to Job"),
    ("spec.trialTemplate.trialSpec.spec.backoffLimit", "0", "spec.backoffLimit to Job: cannot convert string to int32"),
    ("spec.trialTemplate.trialSpec.spec.template.spec.hostNetwork", False, "/spec/template/spec/hostNetwork - false to Job"),
    ("spec.trialTemplate.successCondition", "status.done", "the emulated Katib understands status.conditions"),
]


@pytest.mark.parametrize(("path", "value", "text"), REFUSED)
def test_a_broken_rule_is_named_with_its_field(path: str, value: Any, text: str) -> None:
    message = refusal(changed(path, value)).message
    assert message.startswith(DENIED)
    assert text in message


def test_an_environment_value_that_is_no_text_is_refused() -> None:
    container = "spec.trialTemplate.trialSpec.spec.template.spec.containers.0.env"
    assert "cannot convert number to string" in refusal(changed(container, [{"name": "A", "value": 1}])).message
    assert "/env/0/value" in refusal(changed(container, [{"name": "A", "value": ""}])).message  # Go leaves empty text out
    admit_experiment(changed(container, [{"name": "A", "value": "1"}]), None, NAMESPACE)


def test_all_parts_of_a_rich_job_are_known() -> None:
    experiment = experiment_named()
    pod = experiment["spec"]["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]
    pod["volumes"] = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "files", "configMap": {"name": "m", "items": [{"key": "a", "path": "b"}]}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "d", "readOnly": True}},
    ]
    pod["containers"][0] |= {
        "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": "500m", "example.com/gpu": 1}},
        "volumeMounts": [{"name": "scratch", "mountPath": "/s"}],
        "env": [{"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "securityContext": {"runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    admit_experiment(experiment, None, NAMESPACE)


def test_a_placeholder_without_a_parameter_is_refused() -> None:
    experiment = experiment_named()
    experiment["spec"]["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]["containers"][0]["args"] = [
        "${trialParameters.x}"
    ]
    assert "parameters: [${trialParameters.x}] in spec.trialTemplate not found" in refusal(experiment).message


def test_several_errors_stand_in_one_text() -> None:
    algorithm = {"algorithmName": "tpe"}
    message = refusal(experiment_named(parallelTrialCount=0, algorithm=algorithm)).message
    assert message.startswith(f"{DENIED}[spec.parallelTrialCount: Invalid value: 0: must be greater than 0, spec.algorithm.")
    assert message.endswith("]")


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
