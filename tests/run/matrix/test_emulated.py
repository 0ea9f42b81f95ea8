"""What runs on an emulated platform is planned and named, and takes part in no comparison."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from command_line import LEAST, write_file
from tuneoff.capabilities import Capabilities
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan

MakePlan = Callable[..., Plan]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlan:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("twofold", "fake_plugins:Twofold"))

    def make(*adapters: Any, **more: Any) -> Plan:
        content = {**LEAST, "adapters": list(adapters), **more}
        return make_plan(load_matrix(write_file(tmp_path / "file.yaml", content)))

    return make


def on(platform: str) -> dict[str, str]:
    return {"name": "twofold", "platform": platform}


def labels(plan: Plan) -> dict[str, bool]:
    return {run.label: run.emulated for run in plan.runs}


def test_a_run_on_an_emulated_platform_is_labelled_whoever_chose_it(plan: MakePlan) -> None:
    assert labels(plan("plain", on("emulated"))) == {"plain": False, "twofold@emulated": True}
    assert labels(plan(on("pretended"))) == {"twofold@pretended (emulated)": True}
    assert labels(plan("twofold", platform="emulated")) == {"twofold@emulated": True}
    assert labels(plan("twofold", "twofold", platform="emulated")) == {"twofold@emulated": True, "twofold@emulated#2": True}
    assert labels(plan("twofold")) == {"twofold": False}
    assert labels(plan(on("cluster"))) == {"twofold@cluster": False}


def test_warm_ups_are_labelled_too(plan: MakePlan) -> None:
    made = plan(on("emulated"), warm_up=True)
    assert [(run.label, run.emulated, run.spec.warm_up) for run in made.runs] == [
        ("twofold@emulated", True, True),
        ("twofold@emulated", True, False),
    ]


def test_a_comparison_never_has_an_emulated_run(plan: MakePlan) -> None:
    made = plan("plain", "rich", on("emulated"))
    assert [comparison["adapters"] for comparison in made.analysis["comparisons"]] == [["plain", "rich"]]
    assert made.analysis["emulated"] == ["twofold@emulated"]
    real = plan("plain", "rich", on("cluster"))  # control: the same adapter on its real platform is compared
    assert len(real.analysis["comparisons"]) == 3
    assert "emulated" not in real.analysis


def test_a_platform_that_varies_is_compared_where_it_is_real(plan: MakePlan) -> None:
    made = plan("twofold", "rich", matrix={"platform": ["emulated", "cluster"]})
    assert labels(made) == {"twofold@emulated": True, "rich": False, "twofold": False}
    assert made.analysis["comparisons"] == [{"variant": {"platform": "cluster"}, "adapters": ["twofold", "rich"]}]


def test_the_noise_floor_is_of_real_platforms(plan: MakePlan) -> None:
    assert plan(on("emulated"), on("emulated")).analysis["noise_floor"] == []
    assert plan(on("cluster"), on("cluster")).analysis["noise_floor"] == ["twofold@cluster#2"]


def test_the_mark_survives_json_and_is_read_from_the_adapter_where_a_plan_has_none(plan: MakePlan) -> None:
    made = plan("plain", on("emulated"))
    data = json.loads(json.dumps(made.to_json()))
    assert Plan.from_json(data) == made
    for run in data["runs"]:
        del run["emulated"]
    older = Plan.from_json(data)
    assert (older.plan_id, [run.emulated for run in older.runs]) == (made.plan_id, [False, True])


def test_an_emulated_platform_is_one_of_the_platforms() -> None:
    with pytest.raises(ValueError, match="`emulated_platforms` must be among"):
        Capabilities(framework="none", platforms=("local",), emulated_platforms=("elsewhere",))
