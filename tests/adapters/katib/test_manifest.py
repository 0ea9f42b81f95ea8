"""What the adapter submits passes Katib's admission, has no field that the SDK does not know, and leaves nothing to defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.sdk_fields import unknown_fields
from builders.katib_specs import IMAGE, plan_of, spec_of
from builders.spaces import NUMBERS, SPACE
from katib_emulation.admission import admit_experiment
from tuneoff.base.identity import configuration_digest
from tuneoff.base.space import SearchSpace
from tuneoff.errors import UnsupportedError
from tuneoff.experiment.spec import Budget, Objective, Strategy, Timeouts, Workers
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


def space_of(sampler: str) -> SearchSpace:
    """Return a space that an algorithm of Katib can search."""
    return NUMBERS if sampler in ("cmaes", "sobol") else FINITE if sampler == "grid" else SPACE


def full_plan(folder: Path) -> KatibPlan:
    """A plan with every optional part."""
    pruner = Strategy(name="median", options={"first_epoch": 2, "min_trials": 3})
    return plan_of(spec_of("random", pruner=pruner, options=FULL), folder)


def at(manifest: Any, *path: str | int) -> Any:
    for step in path:
        manifest = manifest[step]
    return manifest


def pod_of(experiment: Mapping[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = at(experiment, "spec", "trialTemplate", "trialSpec", "spec", "template", "spec")
    return pod


# --- fields ---


def test_the_sdk_knows_every_field_of_the_experiment(tmp_path: Path) -> None:
    pytest.importorskip("kubeflow.katib")
    for sampler in ALGORITHMS:
        plan = plan_of(spec_of(sampler, search_space=space_of(sampler)), tmp_path)
        assert unknown_fields(experiment_manifest(plan)) == []
    assert unknown_fields(experiment_manifest(full_plan(tmp_path))) == []


POD = ("spec", "trialTemplate", "trialSpec", "spec", "template", "spec")


def test_each_pod_has_a_device_to_itself_where_the_cluster_has_them(tmp_path: Path) -> None:
    plan = full_plan(tmp_path)
    for given, count in ((plan, "1"), (replace(plan, device_resource=None), None)):
        resources = pod_of(experiment_manifest(given))["containers"][0]["resources"]
        assert [resources[kind].get("nvidia.com/gpu") for kind in ("requests", "limits")] == [count, count]


# --- admission ---


def emulated_plans(folder: Path) -> list[KatibPlan]:
    specs = [
        spec_of(sampler, platform="emulated", search_space=FINITE if sampler == "grid" else SPACE)
        for sampler, algorithm in ALGORITHMS.items()
        if algorithm in EMULATIONS
    ]
    return [*(plan_of(spec, folder) for spec in specs), full_plan(folder)]


def test_katibs_admission_takes_every_experiment_and_changes_nothing(tmp_path: Path) -> None:
    for plan in emulated_plans(tmp_path):
        before = experiment_manifest(plan)
        after = admit_experiment(before, None, namespace_manifest(plan))
        assert without_empty(after) == without_empty(before)  # no default was needed


def without_empty(value: Any) -> Any:
    """Leave out empty lists, which Go leaves out too."""
    if isinstance(value, dict):
        return {key: without_empty(item) for key, item in value.items() if item != []}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def test_a_default_that_the_webhook_fills_in_would_be_seen(tmp_path: Path) -> None:
    plan = full_plan(tmp_path)
    for path in (
        ("spec", "resumePolicy"),
        ("spec", "parallelTrialCount"),
        ("spec", "objective", "metricStrategies"),
        ("spec", "parameters", 0, "feasibleSpace", "distribution"),
        ("spec", "trialTemplate", "successCondition"),
        ("spec", "metricsCollectorSpec", "source", "fileSystemPath", "format"),
    ):
        before = experiment_manifest(plan)
        del at(before, *path[:-1])[path[-1]]
        after = admit_experiment(before, None, namespace_manifest(plan))
        assert without_empty(after) != without_empty(before), path


# --- what the fields say ---


def test_a_trial_is_tried_once_and_its_log_stays(tmp_path: Path) -> None:
    spec = spec_of(timeouts=Timeouts(trial_seconds=10.5), options={"image": IMAGE, "pending_seconds": 20})
    experiment = experiment_manifest(plan_of(spec, tmp_path))
    job = at(experiment, "spec", "trialTemplate", "trialSpec", "spec")
    assert (job["backoffLimit"], job["activeDeadlineSeconds"]) == (0, 31)
    assert at(experiment, "spec", "trialTemplate", "retain") is True
    assert pod_of(experiment)["restartPolicy"] == "Never"


def test_requests_are_limits_and_say_what_the_workers_have(tmp_path: Path) -> None:
    plan = plan_of(spec_of(workers=Workers(count=3, cpus=1.5, memory_mb=512)), tmp_path)
    container = pod_of(experiment_manifest(plan))["containers"][0]
    assert container["resources"] == {"requests": (amounts := {"cpu": "1500m", "memory": "512000000"}), "limits": amounts}
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in container["env"]
    unlimited = replace(plan, workers=Workers(count=1, cpus=0.25))
    assert pod_of(experiment_manifest(unlimited))["containers"][0]["resources"]["limits"] == {"cpu": "250m"}


def test_no_pod_is_privileged_and_none_has_a_token(tmp_path: Path) -> None:
    pod = pod_of(experiment_manifest(full_plan(tmp_path)))
    assert pod["automountServiceAccountToken"] is False
    security = pod["containers"][0]["securityContext"]
    assert security["runAsNonRoot"] is True
    assert (security["privileged"], security["allowPrivilegeEscalation"]) == (False, False)
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["readOnlyRootFilesystem"] is True
    assert {"name": "tmp", "mountPath": "/tmp"} in pod["containers"][0]["volumeMounts"]
    assert {"name": "tmp", "emptyDir": {}} in pod["volumes"]
    assert "securityContext" not in pod  # Katib's own container in it runs as root


def test_secrets_are_named_and_never_contained(tmp_path: Path) -> None:
    plan = full_plan(tmp_path)
    assert pod_of(experiment_manifest(plan))["imagePullSecrets"] == [{"name": "registry"}]
    assert "password" not in json.dumps([experiment_manifest(plan), config_map_manifest(plan)]).lower()


def test_a_data_claim_is_mounted_read_only_where_workloads_look(tmp_path: Path) -> None:
    pod = pod_of(experiment_manifest(full_plan(tmp_path)))
    container = pod["containers"][0]
    assert {"name": "data", "mountPath": "/data", "readOnly": True} in container["volumeMounts"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "mnist", "readOnly": True}} in pod["volumes"]
    assert {"name": "TUNEOFF_CACHE_DIR", "value": "/data"} in container["env"]


def test_median_stopping_has_its_settings_and_is_left_out_where_it_could_stop_nothing(tmp_path: Path) -> None:
    pruner = Strategy(name="median", options={"first_epoch": 2, "min_trials": 4})
    spec = experiment_manifest(plan_of(spec_of(pruner=pruner), tmp_path))["spec"]
    assert spec["earlyStopping"] == {
        "algorithmName": "medianstop",
        "algorithmSettings": [{"name": "min_trials_required", "value": "4"}, {"name": "start_step", "value": "2"}],
    }
    last = spec_of(pruner=Strategy(name="median", options={"first_epoch": 3, "min_trials": 4}))
    assert "earlyStopping" not in experiment_manifest(plan_of(last, tmp_path))["spec"]


def test_settings_are_texts(tmp_path: Path) -> None:
    sampler = Strategy(name="tpe", options={"gamma": 0.25, "n_EI_candidates": 12})
    settings = experiment_manifest(plan_of(spec_of(sampler), tmp_path))["spec"]["algorithm"]["algorithmSettings"]
    assert {"name": "gamma", "value": "0.25"} in settings
    assert {"name": "n_EI_candidates", "value": "12"} in settings


# --- the command and the config map ---


def test_the_command_survives_an_unquoted_shell_line(tmp_path: Path) -> None:
    for plan in emulated_plans(tmp_path):
        command = pod_of(experiment_manifest(plan))["containers"][0]["command"]
        for word in command:
            assert not re.search(r"[\s'\"`;|&<>()*?\\]", word)
        assert command[1:4] == ["-m", "tuneoff_adapters.katib.pod", "${trialParameters.trial-name}"]
        assert command[4:] == [f"{name}=${{trialParameters.{name}}}" for name in plan.space.dimensions]


def test_a_list_that_no_config_map_can_hold_is_refused(tmp_path: Path) -> None:
    configurations = tuple({"name": "x" * 1000 + str(index)} for index in range(1100))
    spec = spec_of("fixed", configurations=configurations, budget=Budget(trials=1100, epochs_per_trial=1))
    with pytest.raises(UnsupportedError, match="config map of 1048576 bytes") as caught:
        config_map_manifest(plan_of(spec, tmp_path))
    assert "\n" not in str(caught.value)


def test_both_platforms_submit_the_same_but_for_names_and_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEOFF_DATA_DIR", "/somewhere/data")
    here, there = (experiment_manifest(plan_of(spec_of(platform=platform), tmp_path)) for platform in ("emulated", "kubernetes"))
    texts = []
    for manifest in (here, there):
        container = pod_of(manifest)["containers"][0]
        texts.append(json.dumps(manifest).replace(manifest["metadata"]["name"][1:], "ID").replace(container["image"], "IMAGE"))
    assert texts[0] == texts[1]
    assert "/somewhere/data" not in texts[0]  # nothing of the machine that submits


def test_a_trial_counts_by_its_best_epoch_in_the_right_direction(tmp_path: Path) -> None:
    for mode, direction in (("min", "minimize"), ("max", "maximize")):
        objective = Objective(metric="validation_accuracy", mode=mode)  # type: ignore[arg-type]
        written = experiment_manifest(plan_of(spec_of(objective=objective), tmp_path))["spec"]["objective"]
        assert written["type"] == direction
        assert written["metricStrategies"] == [{"name": "objective", "value": mode}]
        assert "goal" not in written


@pytest.mark.parametrize("sampler", [name for name in ALGORITHMS if name != "sobol"])
def test_every_algorithm_that_takes_a_seed_gets_the_samplers(tmp_path: Path, sampler: str) -> None:
    spec = spec_of(sampler, search_space=space_of(sampler))
    settings = experiment_manifest(plan_of(spec, tmp_path))["spec"]["algorithm"]["algorithmSettings"]
    assert {"name": "random_state", "value": str(spec.sampler_seed)} in settings


def test_a_list_bounds_the_number_of_trials(tmp_path: Path) -> None:
    finite = SearchSpace({"unordered": SPACE.dimensions["unordered"]})
    spec = spec_of("grid", search_space=finite, budget=Budget(trials=50, epochs_per_trial=1), workers=Workers(count=9))
    written = experiment_manifest(plan_of(spec, tmp_path))["spec"]
    assert (written["maxTrialCount"], written["parallelTrialCount"]) == (4, 4)


def test_the_config_map_has_what_a_pod_reads(tmp_path: Path) -> None:
    spec = spec_of("fixed", pruner=Strategy(name="scripted"))
    digest = configuration_digest(spec.experiment.configurations[1])
    spec = replace(spec, experiment=replace(spec.experiment, stops={digest: 2}))
    data = config_map_manifest(plan_of(spec, tmp_path))["data"]
    context = json.loads(data["trial_context.json"])
    assert (context["run_dir"], context["events_to_stdout"], context["trials"]) == ("/tuneoff/run", True, 1)
    settings = json.loads(data["translation.json"])
    assert settings["configurations"] == [dict(item) for item in spec.experiment.configurations]
    assert settings["stops"] == {digest: 2}
    assert str(tmp_path) not in json.dumps(data)  # no path of the machine that submits
