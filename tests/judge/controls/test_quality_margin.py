"""The margin of quality: in the file, in the plan, in the workload."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tuneoff.errors import ExperimentError
from tuneoff.experiment.analysis import quality_margin, workload_margins
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.experiment.spec import WorkloadSpec

MNIST = "tuneoff_workloads.mnist_mlp:MnistMlp"


def plan(folder: Path, workload: object = "null", **analysis: Any) -> Plan:
    path = folder / "experiment.yaml"
    content = {"workload": workload, "adapters": ["serial"], "budget": {"trials": 2}, "warm_up": False, "power": "none"}
    path.write_text(json.dumps({**content, **({"analysis": analysis} if analysis else {})}))
    return make_plan(load_matrix(path))


def test_a_file_that_sets_none_freezes_what_it_always_froze(tmp_path: Path) -> None:
    assert "quality_margin" not in plan(tmp_path).analysis
    assert plan(tmp_path).analysis_digest == plan(tmp_path, confidence=0.95).analysis_digest


def test_a_margin_is_frozen_with_the_analysis(tmp_path: Path) -> None:
    frozen = plan(tmp_path, quality_margin=0.02)
    assert frozen.analysis["quality_margin"] == 0.02
    assert frozen.plan_id == plan(tmp_path).plan_id
    assert frozen.analysis_digest != plan(tmp_path).analysis_digest


@pytest.mark.parametrize("wrong", [0, -1, "much"])
def test_a_margin_that_is_none_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(ExperimentError, match="quality_margin"):
        plan(tmp_path, quality_margin=wrong)


@pytest.mark.parametrize(("dataset", "margin"), [("digits", 0.01), ("mnist", 0.003), ("fashion_mnist", None)])
def test_the_workload_s_own_margin_is_frozen_where_the_file_sets_none(tmp_path: Path, dataset: str, margin: float | None) -> None:
    made = plan(tmp_path, workload={"name": "mnist_mlp", "options": {"dataset": dataset}})
    workload = made.counted[0].spec.experiment.workload
    found = quality_margin(Plan.from_json(json.loads(json.dumps(made.to_json()))).analysis, workload)
    assert found.value == margin
    assert "'mnist_mlp'" in found.source
    other = quality_margin(made.analysis, replace(workload, options={**workload.options, "hidden": 7}))
    assert other.value is None


@pytest.mark.parametrize("frozen", ["x", [], {}, True, 0, -1, 10**400, float("nan"), float("inf")])
def test_a_frozen_margin_that_is_damaged_is_none(frozen: object) -> None:
    workload = WorkloadSpec(name="mnist_mlp", target=MNIST)
    (identity,) = workload_margins([workload])
    for analysis in ({"quality_margin": frozen}, {"workload_margins": frozen}, {"workload_margins": {identity: frozen}}):
        assert quality_margin(analysis, workload).value is None
    assert quality_margin({"workload_margins": {identity: 0.5}}, workload).value == 0.5


def test_a_workload_that_cannot_be_asked_has_none_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    assert workload_margins([WorkloadSpec(name="gone", target="no_such_module:Gone")]) == {}
    assert "no_such_module" in caplog.text
