"""Controls of the check that the SDK knows every field: one that is misspelt, or of the wrong kind, is found wherever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.katib.sdk_fields import unknown_fields
from adapters.katib.test_manifest import POD, at, full_plan
from tuneoff_adapters.katib.manifest import experiment_manifest

MISSPELT = [
    ((), "speck"),
    (("metadata",), "label"),
    (("spec",), "maxTrials"),
    (("spec", "objective"), "metricStrategy"),
    (("spec", "objective", "metricStrategies", 0), "values"),
    (("spec", "algorithm", "algorithmSettings", 0), "key"),
    (("spec", "earlyStopping"), "algorithmSetting"),
    (("spec", "parameters", 0, "feasibleSpace"), "minimum"),
    (("spec", "metricsCollectorSpec", "source", "fileSystemPath"), "fileFormat"),
    (("spec", "trialTemplate"), "retainJobs"),
    (("spec", "trialTemplate", "trialParameters", 0), "refrence"),
    (("spec", "trialTemplate", "trialSpec"), "Spec"),
    (("spec", "trialTemplate", "trialSpec", "spec"), "backOffLimit"),
    (POD, "restartpolicy"),
    ((*POD, "containers", 0), "envs"),
    ((*POD, "containers", 0, "resources"), "limit"),
    ((*POD, "containers", 0, "securityContext", "seccompProfile"), "kind"),
    ((*POD, "volumes", 0, "configMap"), "mode"),
]


@pytest.mark.parametrize(("path", "field"), MISSPELT, ids=[field for _, field in MISSPELT])
def test_a_misspelt_field_is_found_wherever_it_is(tmp_path: Path, path: tuple[str | int, ...], field: str) -> None:
    pytest.importorskip("kubeflow.katib")
    experiment = experiment_manifest(full_plan(tmp_path))
    at(experiment, *path)[field] = "x"
    (found,) = unknown_fields(experiment)
    assert found.endswith(field)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "maxTrialCount"), "8"),
        (("spec", "parameters", 0, "feasibleSpace", "min"), 0.5),
        (("spec", "trialTemplate", "retain"), "true"),
        ((*POD, "containers", 0, "command"), "python"),
        (("metadata", "labels"), ["a"]),
        ((*POD, "containers", 0, "env", 0, "value"), ""),
    ],
)
def test_a_value_of_the_wrong_kind_is_found(tmp_path: Path, path: tuple[str | int, ...], value: Any) -> None:
    pytest.importorskip("kubeflow.katib")
    experiment = experiment_manifest(full_plan(tmp_path))
    at(experiment, *path[:-1])[path[-1]] = value
    assert len(unknown_fields(experiment)) == 1
