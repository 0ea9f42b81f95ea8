"""`NAME==VERSION` and `environment:` give an adapter an environment of its own: its entry, label, identity and recipe."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from builders.specs import NULL, make_spec
from tuneoff.errors import ExperimentError
from tuneoff.experiment.environments import base_python, interpreter, recipe_of, refusals
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.experiment.skip_check import SkipCheck
from tuneoff.experiment.spec import EnvironmentSpec, RunSpec, WorkloadSpec, run_spec_from_json, run_spec_to_json
from tuneoff.experiment.variants import named
from tuneoff.registry import adapter_class

MLP = WorkloadSpec(name="mnist_mlp", target="tuneoff_workloads.mnist_mlp:MnistMlp")


def planned(folder: Path, *adapters: str) -> Plan:
    path = folder / "file.yaml"
    path.write_text(f"workload: 'null'\nbudget: {{trials: 2}}\nwarm_up: false\nadapters: [{', '.join(adapters)}]\n")
    return make_plan(load_matrix(path))


def spec(adapter: str = "optuna", workload: WorkloadSpec = NULL, sampler: str = "random", **environment: Any) -> RunSpec:
    return replace(make_spec(adapter, workload=workload, sampler=sampler), environment=EnvironmentSpec(**environment))


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("optuna", {"name": "optuna"}),
        ("optuna@ssh", {"name": "optuna", "platform": "ssh"}),
        ("optuna==4.5.0", {"name": "optuna", "environment": {"version": "4.5.0"}}),
        ("optuna==4.5.0@ssh", {"name": "optuna", "platform": "ssh", "environment": {"version": "4.5.0"}}),
        ("my.module:Class==2", {"name": "my.module:Class", "environment": {"version": "2"}}),
    ],
)
def test_a_name_may_have_a_version_and_a_platform(text: str, entry: dict[str, Any]) -> None:
    assert named(text) == named(text, "adapters") == entry
    assert named(text, "workload") == {"name": text}


def test_each_release_is_an_entry_and_a_run_of_its_own(tmp_path: Path) -> None:
    plan = planned(tmp_path, "optuna", "optuna==4.5.0", "optuna==5.0.0", "optuna==4.5.0")
    assert sorted(run.label for run in plan.runs) == ["optuna", "optuna==4.5.0", "optuna==4.5.0#2", "optuna==5.0.0"]
    assert len({run.run_id for run in plan.runs}) == 4
    assert plan.analysis["noise_floor"] == ["optuna==4.5.0#2"]
    assert Plan.from_json(plan.to_json()) == plan


def test_a_run_without_one_has_the_identity_that_it_had(tmp_path: Path) -> None:
    run = make_spec()
    assert "environment" not in run_spec_to_json(run)
    assert run_spec_from_json(run_spec_to_json(run)) == run
    assert "environment" not in planned(tmp_path, "serial").to_json()["runs"][0]["spec"]


def test_versions_that_a_bundle_had_are_no_part_of_the_identity() -> None:
    assert replace(spec(version="4.5.0"), locked=("numpy==2.0",)).run_id == spec(version="4.5.0").run_id
    assert spec(version="4.5.0", packages=("numpy==2.0",)).run_id != spec(version="4.5.0").run_id


def test_a_file_may_name_python_and_packages(tmp_path: Path) -> None:
    plan = planned(tmp_path, '{name: optuna, environment: {version: 4.5.0, packages: ["sqlalchemy<2.1"]}}')
    assert [run.label for run in plan.runs] == ["optuna==4.5.0[sqlalchemy<2.1]"]
    assert recipe_of(plan.runs[0].spec).requirements[-1] == "sqlalchemy<2.1"


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ("{version: newest}", "adapters.0.environment.version: must be a release, e.g. 4.5.0, but got 'newest'"),
        ("{packages: ['x @ https://example.org/x.whl']}", "packages.0: must be a package with its versions"),
        ("{packages: ['--index-url=x']}", "packages.0: must be a package with its versions"),
        ("{packages: ['../x']}", "packages.0: must be a package with its versions"),
        ("{python: three}", "python: must be a Python, e.g. '3.11'"),
    ],
)
def test_what_is_no_release_or_package_is_refused(environment: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as error:
        planned(tmp_path, f"{{name: optuna, environment: {environment}}}")
    assert problem in str(error.value)


def test_the_framework_is_asked_for_in_its_release_and_what_it_needs_beside_it_as_ever() -> None:
    ray = recipe_of(spec("ray-tune", version="2.56.0")).requirements
    assert [text for text in ray if text.startswith("ray")] == ["ray[tune]==2.56.0"]
    assert any(text.startswith("optuna<6") for text in ray)
    assert set(recipe_of(spec("optuna", version="4.5.0")).requirements) == {"cmaes>=0.11", "optuna==4.5.0"}
    assert "torch" in recipe_of(spec("optuna", sampler="gp", version="4.5.0")).requirements
    training = recipe_of(spec("optuna", MLP, version="4.5.0")).requirements
    assert any(text.startswith("torchvision") for text in training)
    own = recipe_of(spec("ray-tune", version="2.56.0", packages=("optuna==4.5.0",))).requirements
    assert [text for text in own if text.startswith("optuna")] == ["optuna==4.5.0"]


def test_all_environments_share_the_versions_of_the_command_but_for_the_framework() -> None:
    first, second = (recipe_of(spec(version=release)) for release in ("4.5.0", "5.0.0"))
    assert first.constraints == second.constraints
    assert f"numpy=={version('numpy')}" in first.constraints
    assert not any(text.startswith("optuna") for text in first.constraints)
    assert first.digest != second.digest
    assert recipe_of(replace(spec(version="4.5.0"), locked=("numpy==1.26",))).constraints == ("numpy==1.26",)


def test_what_cannot_have_one_is_refused_with_the_way_out() -> None:
    ssh = replace(spec(version="4.5.0"), platform="ssh")
    assert list(refusals(ssh)) == [
        "optuna==4.5.0 has an environment of its own, which platform 'local' alone can use, but it runs on 'ssh' or on other "
        "hosts; install the release there, and name it optuna"
    ]
    assert list(refusals(spec(version="3.6.0"))) == ["adapter 'optuna' needs optuna >= 4.0, < 6, but 3.6.0 is asked for"]
    assert list(refusals(spec("serial", version="1"))) == [
        "adapter 'serial' has no framework, so no release can be chosen; leave out ==1"
    ]
    assert list(refusals(spec(version="4.5.0", python="3.99"))) == [
        "Python 3.99 must be on this machine, but PATH has no such python3.99; install it, or leave `python` out"
    ]
    assert list(refusals(spec(version="4.5.0"))) == list(refusals(make_spec("optuna"))) == []


def test_a_release_is_not_refused_for_what_is_installed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor for a package of its sampler that is missing: its environment has that."""
    monkeypatch.setattr("tuneoff.base.capabilities.installed_version", lambda package: "3.0")
    monkeypatch.setattr("tuneoff.experiment.skip_check.missing_modules", lambda names: [*({*names} & {"torch"})])
    check, adapter, run = SkipCheck(), adapter_class("optuna"), spec(sampler="gp", version="4.5.0")
    assert "but 3.0 is installed" in str(check.reason(replace(run, environment=None), adapter))
    assert check.reason(run, adapter) is None
    monkeypatch.setattr("tuneoff.base.capabilities.installed_version", lambda package: "5.0")
    assert "needs torch" in str(SkipCheck().reason(replace(run, environment=None), adapter))


def test_a_run_without_one_has_the_python_of_the_command() -> None:
    assert interpreter(make_spec()) == sys.executable
    assert interpreter(spec(version="4.5.0")).endswith("/bin/python")
    path, release = base_python(None)
    assert Path(path).exists()
    assert release == sys.version.split()[0]
