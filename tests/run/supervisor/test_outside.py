"""What a run has made outside this machine is un-deployed again: by the guardian of a killed command, or by the next command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import outside_adapter
from builders.specs import make_spec
from outside_adapter import TEXT, Outside
from tuneoff.base.layout import LOG, OUTSIDE
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.end import broken_seals, read_end
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import StepEnded
from tuneoff.record.results_folder import note_begun
from tuneoff.run.finish import finish
from tuneoff.run.supervisor.execution import Execution, new_execution, undeploy_outside, write_inputs
from tuneoff.run.supervisor.guardian import Guardian
from tuneoff.run.supervisor.leftovers import clean_execution, left_outside
from tuneoff.run.supervisor.run import RunRequest, supervise

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


def specs(cluster: Path) -> dict[str, RunSpec]:
    """Return what a command was given, by run id."""
    return {spec.run_id: spec for spec in (run_on(cluster), run_on(cluster, fails=True))}


def killed_execution(results: Path, cluster: Path) -> tuple[Execution, Path]:
    """Return an execution whose processes were all killed, and its thing in the cluster."""
    execution = new_execution(run_on(cluster), results / "runs")
    write_inputs(execution)
    (execution.folder / OUTSIDE).write_text(TEXT + "\n")
    thing = cluster / execution.execution_id
    thing.touch()
    return execution, thing


def test_the_next_command_undeploys_what_is_still_outside_or_says_what_it_is(tmp_path: Path, cluster: Path) -> None:
    results = tmp_path / "results"
    execution, thing = killed_execution(results, cluster)
    assert clean_execution(execution.folder) == left_outside(execution.folder) == [TEXT]
    (cluster / "away").touch()
    assert undeploy_outside(results, specs(cluster), 20) == [TEXT]
    assert undeploy_outside(results, specs(cluster), 0) == [TEXT]  # no time, no try
    (cluster / "away").unlink()
    assert undeploy_outside(results, specs(cluster), 20) == []
    assert not thing.exists()
    ends = [event for _, event in EventLog(execution.folder / "events") if isinstance(event, StepEnded)]
    assert [(end.step, end.error is None) for end in ends] == [("undeploy", False), ("undeploy", True)]
    assert undeploy_outside(results, specs(cluster), 0) == []
    used = Path((tmp_path / "cluster.temporary").read_text())  # in no record: that of Ray would name what every Ray has
    assert (used.parent, used.name[:8], used.exists()) == (Path(tempfile.gettempdir()), "tuneoff-", False)


def test_the_guardian_undeploys_what_its_own_command_has_begun(tmp_path: Path, cluster: Path) -> None:
    results = tmp_path / "results"
    earlier, kept = killed_execution(results, cluster)
    (earlier.folder.parent).rename(results / "runs" / "another")
    note_begun(results, "another", earlier.execution_id)
    execution, thing = killed_execution(results, cluster)
    note_begun(results, execution.spec.run_id, execution.execution_id)
    guardian = Guardian(results, since=1)
    assert guardian._process.stdin is not None
    guardian._process.stdin.close()  # what the kernel does when tuneoff is killed
    assert guardian._process.wait(20) == 0
    assert (thing.exists(), kept.exists()) == (False, True)
    assert left_outside(execution.folder) == []


@pytest.mark.parametrize("text", ["{}", None])
def test_what_the_folder_says_of_its_run_is_not_believed(tmp_path: Path, cluster: Path, text: str | None) -> None:
    execution, thing = killed_execution(tmp_path / "results", cluster)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / execution.execution_id).touch()
    for name in ("spec.json", "trial_context.json"):
        path = execution.folder / name
        path.write_text(path.read_text().replace(str(cluster), str(theirs)) if text is None else text)
    assert undeploy_outside(tmp_path / "results", specs(cluster), 20) == []
    assert not thing.exists()
    assert (theirs / execution.execution_id).exists()


def _as_a_link(folder: Path) -> None:
    folder.rename(folder.parents[3] / "elsewhere")
    folder.symlink_to(folder.parents[3] / "elsewhere")


CHANGES: dict[str, Callable[[Path], object]] = {
    "of another plan": lambda folder: folder.parent.rename(folder.parent.with_name("another")),
    "named otherwise": lambda folder: folder.rename(folder.with_name("x")),
    "with a link": lambda folder: (folder / "later").symlink_to(folder / "nowhere"),
    "with a framework's folder elsewhere": lambda folder: (folder / "framework").symlink_to(folder / "nowhere"),
    "as a link": _as_a_link,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_execution_of_the_plan_is_told_and_left(
    tmp_path: Path, cluster: Path, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    execution, thing = killed_execution(tmp_path / "results", cluster)
    CHANGES[change](execution.folder)
    undeploy_outside(tmp_path / "results", specs(cluster), 20)
    assert thing.exists()
    assert "is not un-deployed: " in caplog.text
    assert not (execution.folder / "nowhere").exists()


def test_what_a_framework_leaves_in_its_own_folder_keeps_nothing_from_being_undeployed(tmp_path: Path, cluster: Path) -> None:
    execution, thing = killed_execution(tmp_path / "results", cluster)
    own = execution.folder / "framework"
    own.mkdir()
    (own / "latest").symlink_to(tmp_path / "nowhere")
    os.mkfifo(own / "pipe")
    assert undeploy_outside(tmp_path / "results", specs(cluster), 20) == []
    assert not thing.exists()
    assert not (tmp_path / "nowhere").exists()


def test_an_execution_that_cannot_be_written_is_told_and_the_others_are_undeployed(
    tmp_path: Path, cluster: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = sorted((killed_execution(tmp_path / "results", cluster) for _ in range(2)), key=lambda one: one[0].folder)
    (blocked, kept), (_, thing) = made
    (blocked.folder / LOG).mkdir()
    assert undeploy_outside(tmp_path / "results", specs(cluster), 20) == [TEXT]
    assert (kept.exists(), thing.exists()) == (True, False)
    assert f"{blocked.folder} is not un-deployed: " in caplog.text


def test_a_run_that_failed_names_what_is_outside_and_its_sealed_events_stay_as_they_are(tmp_path: Path, cluster: Path) -> None:
    spec = run_on(cluster, fails=True)
    (cluster / "away").touch()
    ended = supervise(RunRequest(spec=spec, results=tmp_path / "results"))
    folder = ended.execution.folder
    record = finish(folder, spec, ended.ruling, Outside)
    assert record.status == "failed"
    assert record.reason == "step setup failed: the cluster went away; then un-deploy failed: the cluster is away"
    assert [flag.text for flag in record.flags if flag.name == "left_behind"] == [f"{TEXT} {ended.execution.execution_id}"]
    (cluster / "away").unlink()
    assert undeploy_outside(tmp_path / "results", specs(cluster), 20) == []
    assert list(cluster.iterdir()) == []
    assert list(broken_seals(folder, read_end(folder).sealed)) == []
