"""Supervision of whole runs that do not behave."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import stubborn_adapter
from builders.specs import NULL, make_spec
from daemons import daemon_pid
from tuneoff.base.processes import MARK, become_subreaper, is_alive, with_mark
from tuneoff.experiment.spec import Objective, RunSpec, Timeouts, Workers
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import is_final
from tuneoff.run.finish import finish
from tuneoff.run.progress import Listener, LiveRun
from tuneoff.run.supervisor.run import RunRequest, supervise

pytestmark = pytest.mark.slow


def spec(target: str = "stubborn_adapter:Stubborn", **timeouts: float) -> RunSpec:
    return make_spec(
        "stubborn",
        target=target,
        workload=NULL,
        objective=Objective(metric="validation_loss", mode="min"),
        trials=1,
        epochs=1,
        workers=Workers(),
        timeouts=Timeouts(**timeouts),
    )


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(stubborn_adapter.__file__).parent))


class InterruptInTrialStep(Listener):
    def __init__(self) -> None:
        self.event, self.at = threading.Event(), 0.0

    def run_progress(self, live: LiveRun) -> None:
        if live.step == "trial" and not self.event.is_set():
            self.at = time.monotonic()
            self.event.set()


class KillInTrialStep(Listener):
    def __init__(self, results: Path) -> None:
        self._results, self._is_done = results, False

    def run_progress(self, live: LiveRun) -> None:
        if live.step == "trial" and not self._is_done:
            self._is_done = True
            for path in self._results.glob("runs/*/*/events/coordinator-*"):
                process = json.loads(path.read_text().splitlines()[0])
                os.kill(process["pid"], signal.SIGKILL)


def run(specification: RunSpec, results: Path, listener: Listener, interrupt: threading.Event) -> RunRecord:
    ended = supervise(RunRequest(spec=specification, results=results, listener=listener, interrupt=interrupt))
    assert with_mark(MARK, ended.execution.execution_id) == []
    adapter = stubborn_adapter.Stubborn
    return finish(ended.execution.folder, specification, ended.ruling, adapter)


def test_a_coordinator_that_ignores_sigterm_is_undeployed_within_15_seconds_of_an_interruption(tmp_path: Path) -> None:
    listener = InterruptInTrialStep()
    record = run(spec(), tmp_path, listener, listener.event)
    assert time.monotonic() - listener.at < 15
    assert (record.status, record.charged) == ("interrupted", "user")
    assert list(tmp_path.glob("runs/*/*/undeployed"))


def test_a_step_over_its_limit_is_a_timeout_and_not_the_user_s_doing(tmp_path: Path) -> None:
    record = run(spec("stubborn_adapter:Slow", trials_seconds=0.5), tmp_path, Listener(), threading.Event())
    assert (record.status, record.reason, record.charged) == ("timeout", "step trial took longer than 0.5 s", "workload")


def test_a_start_over_its_limit_is_the_infrastructure_s_and_repeated(tmp_path: Path) -> None:
    record = run(spec("stubborn_adapter:SlowStart", deploy_seconds=0.5), tmp_path, Listener(), threading.Event())
    assert (record.status, record.reason, record.charged) == ("timeout", "step deploy took longer than 0.5 s", "infrastructure")
    assert not is_final(record)


def test_a_killed_coordinator_is_reported_in_the_step_that_it_was_in(tmp_path: Path) -> None:
    record = run(spec(), tmp_path, KillInTrialStep(tmp_path), threading.Event())
    assert (record.status, record.charged) == ("failed", "infrastructure")
    assert record.reason == "the coordinator ended with exit code -9 in step trial; see log.txt in its folder"
    assert list(tmp_path.glob("runs/*/*/undeployed"))


@pytest.mark.parametrize("code", [0, 3, 5])  # 0, 2 and 3 have a meaning at the end of all steps
def test_an_adapter_that_ends_its_process_is_charged_and_not_the_machine(tmp_path: Path, code: int) -> None:
    record = run(spec(f"stubborn_adapter:Quits{code}"), tmp_path, Listener(), threading.Event())
    assert (record.status, record.charged) == ("failed", "framework")
    assert str(record.reason).startswith(f"the coordinator ended with exit code {code} in step trial;")


def test_an_adapter_whose_framework_lost_a_part_is_not_charged(tmp_path: Path) -> None:
    record = run(spec("stubborn_adapter:Lost"), tmp_path, Listener(), threading.Event())
    assert (record.status, record.charged) == ("failed", "infrastructure")


def test_an_adapter_that_runs_no_trial_is_charged_and_not_repeated(tmp_path: Path) -> None:
    record = run(spec("stubborn_adapter:Idle"), tmp_path, Listener(), threading.Event())
    assert (record.status, record.reason, record.charged) == ("failed", "no trial completed", "framework")
    assert is_final(record)


def test_a_coordinator_that_cannot_start_is_charged_to_the_machine_and_named(tmp_path: Path) -> None:
    record = run(spec("no_such_module:Adapter"), tmp_path, Listener(), threading.Event())
    assert (record.status, record.charged) == ("failed", "infrastructure")
    assert record.reason is not None
    assert "see log.txt in its folder; its last line: tuneoff.errors.PluginError: 'no_such_module:Adapter'" in record.reason


@pytest.mark.parametrize("name", ["Daemonic", "DaemonicAndSlow"])
def test_a_daemon_without_environment_is_flagged_and_ended_whether_the_coordinator_ends_or_is_killed(
    tmp_path: Path, name: str
) -> None:
    become_subreaper()  # as the command does
    record = run(spec(f"stubborn_adapter:{name}"), tmp_path, KillInTrialStep(tmp_path), threading.Event())
    (note,) = tmp_path.glob("runs/*/*/daemon")
    assert not is_alive(daemon_pid(note))
    if name == "Daemonic":  # one whose coordinator was killed is ended with all others of it, before un-deploy
        (text,) = [flag.text for flag in record.flags if flag.name == "left_behind"]
        assert text == f"process {daemon_pid(note)}: sleep 600; started in step deploy; its parent has ended"


def test_a_fork_of_the_coordinator_that_is_left_is_told_as_one_with_its_step(tmp_path: Path) -> None:
    record = run(spec("stubborn_adapter:Forks"), tmp_path, Listener(), threading.Event())
    (text,) = [flag.text for flag in record.flags if flag.name == "left_behind"]
    assert "tuneoff.run.lifecycle" in text
    assert re.search(r" \(a fork of the coordinator\); started in step (deploy to )?setup; its parent has ended$", text)


class MakesMemory(Listener):
    """Another program of this user, which makes shared memory while the run is in its trial step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def run_progress(self, live: LiveRun) -> None:
        if live.step == "trial":
            self._path.touch()


def test_only_shared_memory_that_the_run_can_have_made_is_said_to_be_left(tmp_path: Path) -> None:
    foreign = Path(f"/dev/shm/joblib_memmapping_folder_{os.getpid()}_{os.urandom(4).hex()}")
    own: list[Path] = []
    try:
        record = run(spec("stubborn_adapter:LeavesMemory"), tmp_path, MakesMemory(foreign), threading.Event())
        own = [Path(f"/dev/shm/left-{record.execution_id[-6:]}")]
        assert foreign.exists()
        told = [flag.text for flag in record.flags if flag.name == "left_behind" and "shared memory" in flag.text]
        assert told == [f"shared memory {own[0]}"]
    finally:
        for path in (foreign, *own):
            path.unlink(missing_ok=True)
