"""The record of an execution whose command was killed: derived from its events, as the run that is planned."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from builders.killed_logs import SPEC, killed_log
from builders.results_folders import Results, edit
from tuneoff.base.layout import END
from tuneoff.experiment.spec import run_spec_to_json
from tuneoff.measure.stored import read_run
from tuneoff.record.endings import KILLED
from tuneoff.run.finish import recover

EXECUTION = f"{SPEC.run_id}-0a1b2c"


def killed(tmp_path: Path, execution: str = EXECUTION) -> tuple[Results, Path]:
    """Return a results folder with an execution that has no record, and the execution's folder."""
    results = Results(tmp_path / "results", [SPEC])
    folder = results.add_log(SPEC, killed_log(execution), KILLED)
    (folder / END).unlink()
    return results, folder


@pytest.mark.parametrize("execution", ["run1-one", f"{SPEC.run_id}-xyz", f"{SPEC.run_id}-0a1b2c3"])
def test_what_is_named_otherwise_than_an_execution_of_the_run_has_no_record(
    tmp_path: Path, execution: str, caplog: pytest.LogCaptureFixture
) -> None:
    results, folder = killed(tmp_path, execution)
    recover(results.path, results.plan, KILLED)
    assert not (folder / END).exists()
    assert f"{folder} has no record and none can be derived" in caplog.text


@pytest.mark.parametrize("name", ["spec.json", "versions.json"])
def test_a_file_that_is_nested_too_deep_stops_nothing(tmp_path: Path, name: str) -> None:
    results, folder = killed(tmp_path)
    (folder / name).write_text("[" * 200_000)
    recover(results.path, results.plan, KILLED)  # or else each --resume ends here
    assert (folder / END).exists() == (name == "versions.json")  # which holds nothing that a record needs


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, 0.0])
def test_timeouts_that_cannot_have_been_in_force_are_not_believed(tmp_path: Path, seconds: float) -> None:
    results, folder = killed(tmp_path)
    theirs = run_spec_to_json(SPEC)
    theirs["experiment"]["timeouts"]["undeploy_seconds"] = seconds
    edit(folder / "spec.json", lambda text: json.dumps({**json.loads(text), "run": theirs}))
    recover(results.path, results.plan, KILLED)
    assert not (folder / END).exists()


def test_the_record_has_the_planned_run_and_the_timeouts_that_were_in_force(tmp_path: Path) -> None:
    results, folder = killed(tmp_path)
    experiment = SPEC.experiment
    timeouts = replace(experiment.timeouts, trial_seconds=7.0)
    workload = replace(experiment.workload, target="subprocess:run")
    theirs = replace(
        SPEC,
        adapter_target="subprocess:Popen",
        experiment=replace(experiment, workload=workload, timeouts=timeouts),
        options={"kubeconfig": "theirs"},
        local_options=("kubeconfig",),
    )
    assert theirs.run_id == SPEC.run_id
    edit(folder / "spec.json", lambda text: json.dumps({**json.loads(text), "run": run_spec_to_json(theirs)}))
    recover(results.path, results.plan, KILLED)
    assert read_run(folder).run_spec() == replace(SPEC, experiment=replace(experiment, timeouts=timeouts))
