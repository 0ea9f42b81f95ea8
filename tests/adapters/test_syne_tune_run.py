"""Whole runs of the Syne Tune adapter, beyond what the contract of all adapters asks; each is made once for several tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.lifecycle_run import LifecycleRun, run_lifecycle, undeploy_afresh
from adapters.syne_tune_workload import MORE_FAULTS, MORE_FAULTS_SPACE, TARGET
from tuneoff.base.processes import with_mark
from tuneoff.base.space import Float, SearchSpace
from tuneoff.record.events import schema
from waiting import until

pytestmark = pytest.mark.slow

ADAPTER = "tuneoff_adapters.syne_tune.adapter:SyneTuneAdapter"
X_SPACE = SearchSpace({"x": Float(low=0.0, high=1.0)})
SLOW = {"epoch_seconds": 0.2}
LATE_EPOCHS = 1  # between the decision and the SIGKILL; how long the poll before it took is the machine's matter


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with blanks in its path: Syne Tune itself splits a trial's command there."""
    path = tmp_path_factory.mktemp("runs") / "with some blanks"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def faulty(folder: Path) -> LifecycleRun:
    configurations = [{"x": index / 100, "fault": fault} for index, fault in enumerate((*MORE_FAULTS, "none"))]
    return run_lifecycle(
        folder,
        ADAPTER,
        workload=TARGET,
        workload_options={"folder": str(folder)},
        space=MORE_FAULTS_SPACE,
        sampler="fixed",
        configurations=configurations,
        trials=len(configurations),
        retries=1,
    )


@pytest.fixture(scope="module")
def halving(folder: Path) -> LifecycleRun:
    configurations = [{"x": x} for x in (0.1, 0.9, 0.8, 0.0, 0.7, 0.05)]
    return run_lifecycle(
        folder,
        ADAPTER,
        workload_options=SLOW,
        space=X_SPACE,
        sampler="fixed",
        configurations=configurations,
        trials=6,
        workers=1,  # what a rung compares depends on the order of the reports
        pruner="asha",
        pruner_options={"first_rung_epochs": 1, "reduction_factor": 3},
        epochs=6,
    )


def epochs_after(run: LifecycleRun, decided: schema.StopDecided) -> int:
    return sum(event.trial == decided.trial and event.t > decided.t for event in run.of(schema.Epoch))


def test_every_submission_precedes_its_start_and_names_syne_tunes_trial(halving: LifecycleRun) -> None:
    started = {event.trial: event for event in halving.of(schema.TrialStarted)}
    assert len(started) == len(halving.configurations) == 6
    for event in halving.of(schema.TrialSubmitted):
        assert event.t < started[event.trial].t
        assert event.trial == f"t{int(event.framework_id or -1):05d}"
        assert started[event.trial].framework_id == event.framework_id
        assert started[event.trial].configuration == event.configuration


def test_syne_tune_prints_no_line_per_trial(halving: LifecycleRun) -> None:
    assert "\033[" not in halving.log


@pytest.mark.parametrize(
    ("fault", "state", "cause"),
    [
        ("raise", "failed", "the toy broke"),
        ("nan", "failed", "must be a finite number"),
        ("system_exit", "failed", "SystemExit: 9"),
        ("exit", None, "exit code 7"),
        ("vanish", None, "exit code 0"),
        ("sigkill", None, "SIGKILL"),
    ],
)
def test_a_fault_is_the_end_of_its_own_trial(faulty: LifecycleRun, fault: str, state: str | None, cause: str) -> None:
    (trial,) = [name for name, configuration in faulty.configurations.items() if configuration["fault"] == fault]
    ends = [event for event in faulty.of(schema.TrialEnded) if event.trial == trial]
    deaths = [event for event in faulty.of(schema.WorkerDied) if event.trial == trial]
    if state is None:  # the process could not write its end
        assert ends == []
        assert all(cause in death.cause for death in deaths)
        assert len(deaths) == (2 if fault == "sigkill" else 1)
    else:
        assert [end.state for end in ends] == [state]
        assert cause in (ends[0].cause or "")
        assert deaths == []


def test_the_trials_beside_faulty_ones_are_complete(faulty: LifecycleRun) -> None:
    assert faulty.exit_code == 0
    sound = [name for name, configuration in faulty.configurations.items() if configuration["fault"] in ("none", "babble")]
    assert len(sound) == 3
    assert [faulty.ends[trial, 1] for trial in sound] == ["completed"] * 3
    assert faulty.of(schema.BestKnown)[0].trial == "t00000"


def test_a_stop_is_decided_then_the_trial_is_killed_and_its_end_written(halving: LifecycleRun) -> None:
    """Which epoch a script stops it after: the check `stops.obeyed`."""
    decisions = halving.of(schema.StopDecided)
    assert decisions
    for decided in decisions:
        (end,) = [event for event in halving.of(schema.TrialEnded) if event.trial == decided.trial]
        epochs = [event for event in halving.of(schema.Epoch) if event.trial == decided.trial]
        assert decided.epoch <= epochs[-1].epoch
        assert epochs_after(halving, decided) <= LATE_EPOCHS
        assert (end.state, end.by, end.epochs) == ("pruned", "coordinator", epochs[-1].epoch)
        assert end.uncertainty_ns > 0
        assert decided.t <= end.t - end.uncertainty_ns
        assert epochs[-1].t <= end.t


def test_asha_stops_the_worse_ones_at_its_rungs_and_lets_the_best_run_to_its_end(halving: LifecycleRun) -> None:
    assert halving.exit_code == 0
    decisions = {event.trial: event for event in halving.of(schema.StopDecided)}
    assert {"t00001", "t00002", "t00004"} <= set(decisions)
    assert {decided.epoch for decided in decisions.values()} <= {1, 3}
    assert "t00003" not in decisions
    for trial in decisions:
        assert halving.ends[trial, 1] == "pruned"
    (end,) = [event for event in halving.of(schema.TrialEnded) if event.trial == "t00003"]
    assert (end.state, end.by) == ("completed", "trial")
    assert halving.of(schema.BestKnown)[0].trial == "t00003"


def test_undeploy_in_a_fresh_process_ends_the_runs_trials_and_only_those(halving: LifecycleRun) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    ours = subprocess.Popen(sleeper, env={**os.environ, "TUNEOFF_SYNE_TUNE_RUN": halving.folder.name})
    other = subprocess.Popen(sleeper, env={**os.environ, "TUNEOFF_SYNE_TUNE_RUN": "another-run"})
    try:
        until(lambda: ours.pid in with_mark("TUNEOFF_SYNE_TUNE_RUN", halving.folder.name))
        undeploy_afresh(halving.folder)
        assert ours.wait(5.0) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        ours.kill()
        other.kill()
        ours.wait()
        other.wait()
    undeploy_afresh(halving.folder)  # a second time: nothing is left to do
