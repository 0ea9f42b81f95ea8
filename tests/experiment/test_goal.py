"""The goal of an objective: how it is stored, and what of the analysis follows from ending at it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_spec
from tuneoff.errors import ExperimentError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.experiment.spec import Objective, run_spec_from_json, run_spec_to_json


def plan(folder: Path, **content: Any) -> Plan:
    path = folder / "experiment.yaml"
    least = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 2}, "warm_up": False, "power": "none"}
    path.write_text(json.dumps({**least, **content}))
    return make_plan(load_matrix(path))


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ({}, {"threshold": None}),
        ({"goal": 0.9}, {"threshold": 0.9}),  # as before there were others: the run keeps its id
        (
            {"goal": 0.9, "goals": {"light": 0.8, "full": 0.9}, "stop": True},
            {"threshold": 0.9, "goals": {"light": 0.8, "full": 0.9}},
        ),
    ],
)
def test_a_goal_is_stored_under_its_first_name(asked: dict[str, Any], stored: dict[str, Any]) -> None:
    spec = make_spec(objective=Objective(metric="validation_accuracy", mode="max", **asked))
    data = json.loads(json.dumps(run_spec_to_json(spec)))
    stop = {"stop": True} if "stop" in asked else {}
    assert data["experiment"]["objective"] == {"metric": "validation_accuracy", "mode": "max", **stored, **stop}
    assert run_spec_from_json(data) == spec
    assert run_spec_from_json(data).run_id == spec.run_id


def test_a_job_that_ends_at_its_goal_is_judged_whole(tmp_path: Path) -> None:
    goal = {"goal": 0.5}
    per_trial, whole = (plan(tmp_path, objective={**goal, "stop": stop}).analysis["questions"] for stop in (False, True))
    assert per_trial["energy"] == "energy.per_completed_trial_without_test"
    assert (whole["energy"], whole["cost"]) == ("energy.job_without_test", "cost.job_without_test")
    assert per_trial.keys() == whole.keys()


def test_weights_are_of_the_tasks_and_frozen(tmp_path: Path) -> None:
    tasks = {"short": {"budget.trials": 1}, "long": {"budget.trials": 2}}
    assert plan(tmp_path, tasks=tasks, analysis={"weights": {"long": 2}}).analysis["weights"] == {"long": 2}
    assert "weights" not in plan(tmp_path, tasks=tasks).analysis
    with pytest.raises(ExperimentError, match="no task named 'lnog'; did you mean 'long'"):
        plan(tmp_path, tasks=tasks, analysis={"weights": {"lnog": 2}})
