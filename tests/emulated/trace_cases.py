"""The experiments that are recorded on a real cluster and held against the emulation; each trial is a line of shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
PARALLEL = 2  # trials of an experiment that says nothing else
METRICS = "/var/log/katib/metrics.log"

# Each epoch is a line with its own time, as Katib sorts by it. `N` is the number of epochs, `V` an epoch's value.
TRAIN = (
    'for e in 1 2 3; do echo "$(date -u +%Y-%m-%dT%H:%M:%S).00000${{e}}Z accuracy={value}" >> ' + METRICS + "; sleep 1; done{end}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One experiment: its shell line, what differs from the plain one, and what its user does meanwhile."""

    train: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    action: Callable[[Any, str, str], None] | None = None  # (client, name, namespace), once its first trials run
    end: str = "Succeeded"  # the condition that ends it; "" where it is deleted


def _edit(client: Any, name: str, namespace: str) -> None:
    client.edit_experiment_budget(name, namespace, parallel_trial_count=3)


def _delete(client: Any, name: str, namespace: str) -> None:
    client.delete_experiment(name, namespace)


_MEDIAN = {
    "algorithmName": "medianstop",
    "algorithmSettings": [{"name": "min_trials_required", "value": "1"}, {"name": "start_step", "value": "2"}],
}
_GRID = {"algorithmName": "grid", "algorithmSettings": [{"name": "random_state", "value": "1"}]}
_CHOICES = [{"name": "x", "parameterType": "categorical", "feasibleSpace": {"list": ["0", "1"]}}]
_GOOD = TRAIN.format(value="${trialParameters.x}", end="")
CASES: Mapping[str, Case] = {
    "success": Case(train=_GOOD),
    "goal": Case(
        train=_GOOD,
        spec={
            "objective": {"type": "maximize", "objectiveMetricName": "accuracy", "goal": 0.0},
            "parallelTrialCount": 1,  # where two end at once, what is counted at the end is a matter of milliseconds
        },
    ),
    "trial-fails": Case(
        train=TRAIN.format(value="0.5", end="; exit ${trialParameters.x}"),
        spec={"algorithm": _GRID, "parameters": _CHOICES, "maxTrialCount": 2, "maxFailedTrialCount": 2},
    ),
    "too-many-failures": Case(
        train=f"echo ${{trialParameters.x}} >> {METRICS}; exit 3", spec={"parallelTrialCount": 1}, end="Failed"
    ),
    "no-metrics": Case(
        train=f"echo ${{trialParameters.x}} >> {METRICS}; sleep 1",
        spec={"parallelTrialCount": 1, "maxFailedTrialCount": 2},
        end="Failed",
    ),
    # what runs later is worse than all that ran before
    "median-stop": Case(
        train=TRAIN.format(value="-$(date +%s)", end="; sleep 3; : ${trialParameters.x}"),
        spec={"earlyStopping": _MEDIAN, "parallelTrialCount": 1, "maxTrialCount": 3},
    ),
    "edit": Case(train=_GOOD, spec={"parallelTrialCount": 1, "maxTrialCount": 5}, action=_edit),
    "delete": Case(train=_GOOD, action=_delete, end=""),
}


def manifest(name: str, case: Case, image: str) -> Object:
    """Return the Experiment as a plain object."""
    command = ["sh", "-c", f"sh -c '{case.train}'"]  # one process below Katib's shell, as a training is
    container = {"name": "training-container", "image": image, "command": command}
    job = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec: Object = {
        "objective": {"type": "maximize", "objectiveMetricName": "accuracy"},
        "algorithm": {"algorithmName": "random", "algorithmSettings": [{"name": "random_state", "value": "1"}]},
        "parallelTrialCount": PARALLEL,
        "maxTrialCount": 3,
        "maxFailedTrialCount": 1,
        "parameters": [{"name": "x", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "0.9"}}],
        "metricsCollectorSpec": {
            "collector": {"kind": "File"},
            "source": {"fileSystemPath": {"path": METRICS, "kind": "File", "format": "TEXT"}},
        },
        "trialTemplate": {
            "retain": True,
            "primaryContainerName": "training-container",
            "trialParameters": [{"name": "x", "reference": "x"}],
            "trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": job},
        },
        **case.spec,
    }
    return {"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": {"name": name}, "spec": spec}
