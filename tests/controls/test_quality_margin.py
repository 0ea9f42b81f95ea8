"""The margin of quality: in the file, in the plan, in the workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tuneoff.controls.margin import quality_margin
from tuneoff.errors import ExperimentError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.matrix.plan import Plan, make_plan

MNIST = "tuneoff_workloads.mnist_mlp:MnistMlp"


def plan(folder: Path, **analysis: Any) -> Plan:
    path = folder / "experiment.yaml"
    content = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 2}, "warm_up": False, "power": "none"}
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
def test_the_workload_has_a_margin_of_its_own(dataset: str, margin: float | None) -> None:
    found = quality_margin({}, WorkloadSpec(name="mnist_mlp", target=MNIST, options={"dataset": dataset}))
    assert found.value == margin
    assert "'mnist_mlp'" in found.source


def test_a_workload_that_is_gone_is_a_reason() -> None:
    found = quality_margin({}, WorkloadSpec(name="gone", target="no_such_module:Gone"))
    assert found.value is None
    assert "cannot be asked" in found.source
