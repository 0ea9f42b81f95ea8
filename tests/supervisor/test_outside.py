"""What a run has made outside this machine is un-deployed again: by the guardian of a killed command, or by the next command."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import outside_adapter
from event_logs import make_spec
from outside_adapter import TEXT, Outside
from tuneoff.events.reader import EventLog
from tuneoff.events.schema import StepEnded
from tuneoff.experiment.spec import RunSpec
from tuneoff.matrix.finish import finish
from tuneoff.matrix.listener import Silent
from tuneoff.records.seal import broken_seals
from tuneoff.supervisor.guardian import Guardian
from tuneoff.supervisor.leftovers import OUTSIDE, clean_execution, left_outside
from tuneoff.supervisor.outside import undeploy_outside
from tuneoff.supervisor.prepare import Execution, new_execution, write_inputs
from tuneoff.supervisor.run import supervise

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(outside_adapter.__file__).parent))


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    folder.mkdir()
    return folder


def run_on(cluster: Path, **options: object) -> RunSpec:
    spec = make_spec(adapter="outside")
    workload = replace(spec.experiment.workload, target="tuneoff_workloads.null:Null")
    return replace(
        spec,
        experiment=replace(spec.experiment, workload=workload),
        adapter_target=f"{Outside.__module__}:{Outside.__qualname__}",
        options={"cluster": str(cluster), **options},
    )


def killed_execution(results: Path, cluster: Path) -> tuple[Execution, Path]:
    """Return an execution whose processes were all killed, and its thing in the cluster."""
    execution = new_execution(run_on(cluster), results / "runs")
    write_inputs(execution)
    (execution.folder / OUTSIDE).write_text(TEXT + "\n")
    thing = cluster / execution.execution_id
    thing.touch()
    return execution, thing


def test_the_next_command_undeploys_what_is_still_outside(tmp_path: Path, cluster: Path) -> None:
    execution, thing = killed_execution(tmp_path / "results", cluster)
    assert left_outside(execution.folder) == [TEXT]
    assert undeploy_outside(tmp_path / "results", 20) == []
    assert not thing.exists()
    ends = [event for _, event in EventLog(execution.folder / "events") if isinstance(event, StepEnded)]
    assert [(end.step, end.error) for end in ends] == [("undeploy", None)]
    assert undeploy_outside(tmp_path / "results", 0) == []


def test_the_guardian_undeploys_when_its_pipe_ends_without_a_goodbye(tmp_path: Path, cluster: Path) -> None:
    execution, thing = killed_execution(tmp_path / "results", cluster)
    guardian = Guardian(tmp_path / "results")
    assert guardian._process.stdin is not None
    guardian._process.stdin.close()  # what the kernel does when tuneoff is killed
    assert guardian._process.wait(20) == 0
    assert not thing.exists()
    assert left_outside(execution.folder) == []


def test_what_cannot_be_removed_is_told_and_tried_again(tmp_path: Path, cluster: Path) -> None:
    _, thing = killed_execution(tmp_path / "results", cluster)
    (cluster / "away").touch()
    assert undeploy_outside(tmp_path / "results", 20) == [TEXT]
    assert undeploy_outside(tmp_path / "results", 0) == [TEXT]  # no time, no try
    (cluster / "away").unlink()
    assert undeploy_outside(tmp_path / "results", 20) == []
    assert not thing.exists()


def test_an_execution_that_cannot_be_read_keeps_its_note(tmp_path: Path, cluster: Path, caplog: pytest.LogCaptureFixture) -> None:
    execution, _ = killed_execution(tmp_path / "results", cluster)
    (execution.folder / "spec.json").write_text("{}")
    assert undeploy_outside(tmp_path / "results", 20) == [TEXT]
    assert "cannot be un-deployed" in caplog.text
    assert clean_execution(execution.folder) == [TEXT]


def test_a_run_that_failed_names_what_is_outside_and_its_sealed_events_stay_as_they_are(tmp_path: Path, cluster: Path) -> None:
    spec = run_on(cluster, fails=True)
    (cluster / "away").touch()
    ended = supervise(spec, tmp_path / "results", Silent(), threading.Event())
    folder = ended.execution.folder
    record = finish(folder, spec, ended.verdict, Outside)
    assert record.status == "failed"
    assert record.reason == "step setup failed: the cluster went away; then un-deploy failed: the cluster is away"
    assert [flag.text for flag in record.flags if flag.name == "left_behind"] == [f"{TEXT} {ended.execution.execution_id}"]
    (cluster / "away").unlink()
    assert undeploy_outside(tmp_path / "results", 20) == []
    assert list(cluster.iterdir()) == []
    assert broken_seals(folder, record.sealed) == []
