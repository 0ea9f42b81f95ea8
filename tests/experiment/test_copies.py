"""Copies of a job in the plan: runs alike but for their number, with shares of the devices; refused where none can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import write_file
from tuneoff.errors import ExperimentError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.experiment.spec import run_spec_from_json, run_spec_to_json


def plan_of(folder: Path, **changes: Any) -> Plan:
    content = {"workload": "null", "adapters": ["serial", "optuna"], "budget": {"trials": 2}, "seeds": [0, 1]}
    return make_plan(load_matrix(write_file(folder / "file.yaml", {**content, **changes})))


def test_each_copy_is_a_run_beside_the_others_and_a_warm_up_is_alone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, copies=3)
    runs = [run for run in plan.counted if run.label == "optuna" and run.spec.seed == 1]
    assert [run.name for run in runs] == [f"optuna random seed 1 (copy {number} of 3)" for number in (1, 2, 3)]
    assert len({run.run_id for run in runs}) == 3
    assert len({run.spec.shared_key for run in runs}) == 1
    assert [run.spec.sampler_seed for run in runs] == [runs[0].spec.sampler_seed] * 3  # the same work
    places = [plan.runs.index(run) for run in runs]
    assert places == list(range(places[0], places[0] + 3))
    warm = [run.spec for run in plan.runs if run.spec.warm_up]
    assert [(spec.copy, spec.experiment.copies) for spec in warm] == [(0, 1)] * 2
    alone = plan_of(tmp_path)
    assert plan.totals.runs == 3 * alone.totals.runs
    assert plan.totals.seconds_at_most == alone.totals.seconds_at_most


def test_a_job_alone_is_the_run_that_it_always_was(tmp_path: Path) -> None:
    alone, varied = plan_of(tmp_path, copies=1), plan_of(tmp_path, matrix={"copies": [1, 2]})
    assert alone.plan_id == plan_of(tmp_path).plan_id
    assert {run.run_id for run in alone.counted} <= {run.run_id for run in varied.counted}
    spec = next(run.spec for run in varied.counted if run.spec.copy)
    assert run_spec_from_json(run_spec_to_json(spec)) == spec
    assert "copies" not in run_spec_to_json(alone.counted[0].spec)["experiment"]


def test_devices_are_shared_out(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, copies=2, workers={"devices": [0, 1, 2, 3], "per_device": 2}, adapters=["serial"], seeds=[0])
    workers = [run.spec.experiment.workers for run in plan.counted]
    assert [(of.devices, of.count) for of in workers] == [((0, 1), 4), ((2, 3), 4)]
    with pytest.raises(ExperimentError, match=r"copies: 3 jobs share the devices of `workers`, but there are 4; name 3, or a m"):
        plan_of(tmp_path, copies=3, workers={"devices": [0, 1, 2, 3]})


def test_where_trials_are_on_other_hosts_copies_are_refused_by_name(tmp_path: Path) -> None:
    adapters = [{"name": "serial", "platform": "ssh", "options": {"hosts": ["a"]}}, "serial"]
    plan = plan_of(tmp_path, copies=2, adapters=adapters, seeds=[0])
    reasons = {run.label: run.skip_reason for run in plan.counted}
    assert reasons["serial"] is None
    assert (reasons["serial@ssh"] or "").startswith("`copies` share this machine, but trials of the adapter are on other hosts")
