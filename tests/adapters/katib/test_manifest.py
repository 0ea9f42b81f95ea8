"""What the adapter submits passes Katib's admission, has no field that the SDK does not know, and leaves nothing to defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.katib_specs import IMAGE, plan_of, spec_of
from builders.spaces import NUMBERS, SPACE
from katib_emulation.admission import admit_experiment
from tuneoff.base.identity import configuration_digest
from tuneoff.base.space import SearchSpace
from tuneoff.errors import UnsupportedError
from tuneoff.experiment.spec import Budget, Objective, RunSpec, Strategy, Timeouts, Workers
from tuneoff_adapters.katib.manifest import config_map_manifest, experiment_manifest
from tuneoff_adapters.katib.offers import ALGORITHMS, EMULATIONS
from tuneoff_adapters.katib.plan import KatibPlan
from tuneoff_adapters.kubernetes.manifest import namespace_manifest

FULL = {
    "namespace": "team",
    "image": IMAGE,
    "data_claim": "mnist",
    "image_pull_secret": "registry",
    "service_account": "trials",
    "node_selector": {"pool": "trials"},
    "device_resource": "nvidia.com/gpu",
}
FINITE = SearchSpace({name: item for name, item in SPACE if name in ("integer", "unordered")})
POD = ("spec", "trialTemplate", "trialSpec", "spec", "template", "spec")


def full_plan(folder: Path) -> KatibPlan:
    """A plan with every optional part."""
    pruner = Strategy(name="median", options={"first_epoch": 2, "min_trials": 3})
    return plan_of(spec_of("random", pruner=pruner, options=FULL), folder)


def plans(folder: Path, platform: str = "kubernetes") -> list[KatibPlan]:
    """One of each algorithm that the platform has, and the full one."""
    found = [full_plan(folder)]
    for sampler, algorithm in ALGORITHMS.items():
        if platform == "kubernetes" or algorithm in EMULATIONS:
            space = NUMBERS if sampler in ("cmaes", "sobol") else FINITE if sampler == "grid" else SPACE
            found.append(plan_of(spec_of(sampler, platform=platform, search_space=space), folder))
    return found


def at(manifest: Any, *path: str | int) -> Any:
    for step in path:
        manifest = manifest[step]
    return manifest


def written(spec: RunSpec | KatibPlan, folder: Path) -> dict[str, Any]:
    """Return the `spec` of the Experiment."""
    found: dict[str, Any] = experiment_manifest(plan_of(spec, folder) if isinstance(spec, RunSpec) else spec)["spec"]
    return found


# --- fields ---


def through_the_sdk(experiment: Mapping[str, Any]) -> Any:
    """Return an Experiment as the SDK's own models keep it; the real API server keeps unknown fields without a word."""
    import kubernetes.client
    from kubeflow import katib

    def kept(client: Any, thing: Any, kind: str) -> Any:
        return client.sanitize_for_serialization(client.deserialize(SimpleNamespace(data=json.dumps(thing)), kind))

    whole = kept(katib.ApiClient(), experiment, "V1beta1Experiment")
    template = whole["spec"]["trialTemplate"]
    template["trialSpec"] = kept(kubernetes.client.ApiClient(), template["trialSpec"], "V1Job")
    return whole


def test_the_sdk_knows_every_field_of_the_experiment(tmp_path: Path) -> None:
    pytest.importorskip("kubeflow.katib")
    for plan in plans(tmp_path):
        experiment = experiment_manifest(plan)
        assert through_the_sdk(experiment) == experiment
        assert all(entry["value"] for entry in at(experiment, *POD, "containers", 0, "env"))  # Katib loses an empty text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "parameters", 0, "feasibleSpace", "minimum"), "1"),
        (("spec", "trialTemplate", "trialSpec", "spec", "backOffLimit"), 0),
        ((*POD, "containers", 0, "resources", "limit"), {}),
        (("spec", "maxTrialCount"), "8"),
    ],
)
def test_a_field_that_is_misspelt_or_of_the_wrong_kind_is_found(tmp_path: Path, path: tuple[str | int, ...], value: Any) -> None:
    pytest.importorskip("kubeflow.katib")
    experiment = experiment_manifest(full_plan(tmp_path))
    at(experiment, *path[:-1])[path[-1]] = value
    assert through_the_sdk(experiment) != experiment


# --- admission ---


def without_empty(value: Any) -> Any:
    """Leave out empty lists, which Go leaves out too."""
    if isinstance(value, dict):
        return {key: without_empty(item) for key, item in value.items() if item != []}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def test_katibs_admission_takes_every_experiment_and_changes_nothing(tmp_path: Path) -> None:
    for plan in plans(tmp_path, "emulated"):
        before = experiment_manifest(plan)
        after = admit_experiment(before, None, namespace_manifest(plan))
        assert without_empty(after) == without_empty(before)  # no default was needed
    for path in (
        ("resumePolicy",),
        ("objective", "metricStrategies"),
        ("parameters", 0, "feasibleSpace", "distribution"),
        ("trialTemplate", "successCondition"),
        ("metricsCollectorSpec", "source", "fileSystemPath", "format"),
    ):  # the control: one that the webhook fills in would be seen
        before = experiment_manifest(full_plan(tmp_path))
        del at(before["spec"], *path[:-1])[path[-1]]
        after = admit_experiment(before, None, namespace_manifest(full_plan(tmp_path)))
        assert without_empty(after) != without_empty(before), path


# --- what the fields say ---


def test_a_trial_is_tried_once_under_its_limits_and_its_log_stays(tmp_path: Path) -> None:
    timeouts, workers = Timeouts(trial_seconds=10.5), Workers(count=3, cpus=1.5, memory_mb=512)
    spec = spec_of(timeouts=timeouts, workers=workers, options={"image": IMAGE, "pending_seconds": 20})
    template = written(spec, tmp_path)["trialTemplate"]
    job = template["trialSpec"]["spec"]
    assert (template["retain"], job["backoffLimit"], job["activeDeadlineSeconds"]) == (True, 0, 31)
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    (container,) = job["template"]["spec"]["containers"]
    assert container["resources"] == {"requests": (amounts := {"cpu": "1500m", "memory": "512000000"}), "limits": amounts}
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in container["env"]
    unlimited = replace(plan_of(spec, tmp_path), workers=Workers(count=1, cpus=0.25))
    assert at(experiment_manifest(unlimited), *POD, "containers", 0, "resources", "limits") == {"cpu": "250m"}


def test_no_pod_is_privileged_and_what_the_options_give_is_there(tmp_path: Path) -> None:
    plan = full_plan(tmp_path)
    experiment = experiment_manifest(plan)
    pod = at(experiment, *POD)
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert (pod["automountServiceAccountToken"], security["runAsNonRoot"]) == (False, True)
    assert (security["privileged"], security["allowPrivilegeEscalation"]) == (False, False)
    assert (security["capabilities"], security["readOnlyRootFilesystem"]) == ({"drop": ["ALL"]}, True)
    assert "securityContext" not in pod  # Katib's own container in it runs as root
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
    assert {"name": "tmp", "emptyDir": {}} in pod["volumes"]
    assert (pod["imagePullSecrets"], pod["serviceAccountName"]) == ([{"name": "registry"}], "trials")
    assert "password" not in json.dumps([experiment, config_map_manifest(plan)]).lower()
    assert {"name": "data", "mountPath": "/data", "readOnly": True} in container["volumeMounts"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "mnist", "readOnly": True}} in pod["volumes"]
    assert {"name": "TUNEOFF_CACHE_DIR", "value": "/data"} in container["env"]
    assert [container["resources"][kind]["nvidia.com/gpu"] for kind in ("requests", "limits")] == ["1", "1"]
    assert pod["nodeSelector"] == {"pool": "trials"}


def test_median_stopping_has_its_settings_and_is_left_out_where_it_could_stop_nothing(tmp_path: Path) -> None:
    first, last = (
        written(spec_of(pruner=Strategy(name="median", options={"first_epoch": epoch, "min_trials": 4})), tmp_path)
        for epoch in (2, 3)
    )
    assert first["earlyStopping"] == {
        "algorithmName": "medianstop",
        "algorithmSettings": [{"name": "min_trials_required", "value": "4"}, {"name": "start_step", "value": "2"}],
    }
    assert "earlyStopping" not in last


def test_settings_are_texts_with_the_samplers_seed_where_one_is_taken(tmp_path: Path) -> None:
    spec = spec_of(Strategy(name="tpe", options={"gamma": 0.25, "n_EI_candidates": 12}))
    settings = written(spec, tmp_path)["algorithm"]["algorithmSettings"]
    assert {(entry["name"], entry["value"]) for entry in settings} == {
        ("gamma", "0.25"),
        ("n_EI_candidates", "12"),
        ("random_state", str(spec.sampler_seed)),
    }
    for plan in plans(tmp_path):
        assert ("random_state" in plan.algorithm.settings) == (plan.algorithm.name != "sobol")


def test_the_command_survives_an_unquoted_shell_line(tmp_path: Path) -> None:
    for plan in plans(tmp_path):
        command = at(experiment_manifest(plan), *POD, "containers", 0, "command")
        assert not any(re.search(r"[\s'\"`;|&<>()*?\\]", word) for word in command)
        assert command[1:4] == ["-m", "tuneoff_adapters.katib.pod", "${trialParameters.trial-name}"]
        assert command[4:] == [f"{name}=${{trialParameters.{name}}}" for name in plan.space.dimensions]


def test_a_list_that_no_config_map_can_hold_is_refused(tmp_path: Path) -> None:
    configurations = tuple({"name": "x" * 1000 + str(index)} for index in range(1100))
    spec = spec_of("fixed", configurations=configurations, budget=Budget(trials=1100, epochs_per_trial=1))
    with pytest.raises(UnsupportedError, match="config map of 1048576 bytes"):
        config_map_manifest(plan_of(spec, tmp_path))


def test_both_platforms_submit_the_same_but_for_names_and_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEOFF_DATA_DIR", "/somewhere/data")
    texts = []
    for platform in ("emulated", "kubernetes"):
        manifest = experiment_manifest(plan_of(spec_of(platform=platform), tmp_path))
        image = at(manifest, *POD, "containers", 0, "image")
        texts.append(json.dumps(manifest).replace(manifest["metadata"]["name"][1:], "ID").replace(image, "IMAGE"))
    assert texts[0] == texts[1]
    assert "/somewhere/data" not in texts[0]  # nothing of the machine that submits


@pytest.mark.parametrize(("mode", "direction"), [("min", "minimize"), ("max", "maximize")])
def test_a_trial_counts_by_its_best_epoch_in_the_right_direction(tmp_path: Path, mode: Any, direction: str) -> None:
    objective = written(spec_of(objective=Objective(metric="validation_accuracy", mode=mode)), tmp_path)["objective"]
    assert (objective["type"], "goal" in objective) == (direction, False)
    assert objective["metricStrategies"] == [{"name": "objective", "value": mode}]


def test_a_list_bounds_the_number_of_trials(tmp_path: Path) -> None:
    finite = SearchSpace({"unordered": SPACE.dimensions["unordered"]})
    spec = spec_of("grid", search_space=finite, budget=Budget(trials=50, epochs_per_trial=1), workers=Workers(count=9))
    found = written(spec, tmp_path)
    assert (found["maxTrialCount"], found["parallelTrialCount"]) == (4, 4)


def test_the_config_map_has_what_a_pod_reads(tmp_path: Path) -> None:
    spec = spec_of("fixed", pruner=Strategy(name="scripted"))
    digest = configuration_digest(spec.experiment.configurations[1])
    spec = replace(spec, experiment=replace(spec.experiment, stops={digest: 2}))
    data = config_map_manifest(plan_of(spec, tmp_path))["data"]
    context = json.loads(data["trial_context.json"])
    assert (context["run_dir"], context["events_to_stdout"], context["trials"]) == ("/tuneoff/run", True, 1)
    assert (context["limits"], context["memory_bytes"], context["slots"]) == ([], None, 1)
    settings = json.loads(data["translation.json"])
    assert settings["configurations"] == [dict(item) for item in spec.experiment.configurations]
    assert settings["stops"] == {digest: 2}
    assert str(tmp_path) not in json.dumps(data)  # no path of the machine that submits
