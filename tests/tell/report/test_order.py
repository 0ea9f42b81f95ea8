"""Rows stand as the file lists variants, adapters and samplers, whatever the order of the runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from command_line import LEAST, write_file
from tuneoff.cli.selection import overridden_plan
from tuneoff.experiment.names import variant_text
from tuneoff.experiment.plan import Plan
from tuneoff.judge.results import in_file_order


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that plans an experiment; JSON and back, as a results folder has it."""
    fake_plugins.register(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", "")

    def make(**content: Any) -> Plan:
        made = overridden_plan(write_file(tmp_path / "experiment.yaml", {**LEAST, **content}))
        return Plan.from_json(json.loads(json.dumps(made.to_json())))

    return make


def rows(plan: Plan) -> list[tuple[str, str, str]]:
    found = [
        (variant_text(run.spec.experiment.variant), run.label, run.spec.experiment.sampler.name) for run in in_file_order(plan)
    ]
    return list(dict.fromkeys(found))


def test_variants_then_adapters_then_samplers(plan: Any) -> None:
    made = plan(
        adapters=["plain", "rich", "plain", {"name": "rich", "options": {"storage": "x"}}],
        matrix={"workers.count": [2, 1], "sampler": ["random", "tpe"]},
        seeds=[5, 3, 4],
    )
    labels = ["plain", "rich", "plain#2", 'rich{"storage":"x"}']
    expected = [(f"workers={count}", label, sampler) for count in (2, 1) for label in labels for sampler in ("random", "tpe")]
    assert rows(made) == expected
    assert rows(made) != list(dict.fromkeys((variant_text(run.spec.experiment.variant), run.label, "") for run in made.counted))
    assert [run.spec.seed for run in in_file_order(made)][:3] == [5, 3, 4]


def test_samplers_that_are_another_one_come_last(plan: Any) -> None:
    made = plan(adapters=["plain", "rich"], matrix={"sampler": ["default", "random"]})
    samplers = [(label, sampler) for _, label, sampler in rows(made) if label == "plain"]
    assert samplers == [("plain", "random"), ("plain", "default")]


def test_a_plan_whose_file_is_unknown_keeps_its_runs(plan: Any) -> None:
    made = plan(adapters=["plain", "rich"])
    without = Plan(name=made.name, path=made.path, runs=made.runs)
    assert {run.run_id for run in in_file_order(without)} == {run.run_id for run in made.counted}
