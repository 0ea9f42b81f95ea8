"""Whole runs of the Syne Tune adapter, beyond what the contract of all adapters asks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.lifecycle_run import LifecycleRun, run_lifecycle, undeploy_afresh
from adapters.syne_tune_workload import FAULT_SPACE, FAULTS, TARGET
from tuneoff.base.processes import with_mark
from tuneoff.base.space import Float, SearchSpace
from tuneoff.record.events import schema
from waiting import until

pytestmark = pytest.mark.slow

ADAPTER = "tuneoff_adapters.syne_tune.adapter:SyneTuneAdapter"
LATE_EPOCHS = 1  # between the decision and the SIGKILL; how long the poll before it took is the machine's matter


def test_what_would_end_a_whole_tuning_ends_its_own_trial_alone(tmp_path: Path) -> None:
    folder = tmp_path / "with some blanks"  # Syne Tune itself splits a trial's command there
    folder.mkdir()
    run = run_lifecycle(
        folder,
        ADAPTER,
        workload=TARGET,
        workload_options={"folder": str(folder)},
        space=FAULT_SPACE,
        sampler="fixed",
        configurations=[{"x": index / 100, "fault": fault} for index, fault in enumerate(FAULTS)],
        trials=len(FAULTS),
        retries=1,
    )
    assert run.exit_code == 0, run.log
    assert [run.ends.get((f"t0000{number}", 1)) for number in range(3)] == [None, "completed", "completed"]
    (death,) = run.of(schema.WorkerDied)
    assert (death.trial, "exit code 0" in death.cause) == ("t00000", True)
    assert run.of(schema.BestKnown)[0].trial == "t00001"


@pytest.fixture(scope="module")
def halving(tmp_path_factory: pytest.TempPathFactory) -> LifecycleRun:
    return run_lifecycle(
        tmp_path_factory.mktemp("halving"),
        ADAPTER,
        workload_options={"epoch_seconds": 0.2},
        space=SearchSpace({"x": Float(low=0.0, high=1.0)}),
        sampler="fixed",
        configurations=[{"x": x} for x in (0.1, 0.9, 0.8, 0.0, 0.7, 0.05)],
        trials=6,
        workers=1,  # what a rung compares depends on the order of the reports
        pruner="asha",
        pruner_options={"first_rung_epochs": 1, "reduction_factor": 3},
        epochs=6,
    )


def test_asha_stops_the_worse_ones_at_its_rungs_and_a_stop_is_decided_before_the_trial_is_killed(halving: LifecycleRun) -> None:
    """Which epoch a script stops it after: the check `stops.obeyed`."""
    assert halving.exit_code == 0
    assert "\033[" not in halving.log
    decisions = {event.trial: event for event in halving.of(schema.StopDecided)}
    assert {"t00001", "t00002", "t00004"} <= set(decisions)
    assert {decided.epoch for decided in decisions.values()} <= {1, 3}
    ends = {event.trial: event for event in halving.of(schema.TrialEnded)}
    assert (ends["t00003"].state, ends["t00003"].by) == ("completed", "trial")
    assert halving.of(schema.BestKnown)[0].trial == "t00003"
    for trial, decided in decisions.items():
        end, epochs = ends[trial], [event for event in halving.of(schema.Epoch) if event.trial == trial]
        assert decided.epoch <= epochs[-1].epoch
        assert sum(event.t > decided.t for event in epochs) <= LATE_EPOCHS
        assert (end.state, end.by, end.epochs) == ("pruned", "coordinator", epochs[-1].epoch)
        assert end.uncertainty_ns > 0
        assert decided.t <= end.t - end.uncertainty_ns
        assert epochs[-1].t <= end.t


def test_every_submission_precedes_its_start_and_names_syne_tunes_trial(halving: LifecycleRun) -> None:
    started = {event.trial: event for event in halving.of(schema.TrialStarted)}
    assert len(started) == len(halving.configurations) == 6
    for event in halving.of(schema.TrialSubmitted):
        assert event.t < started[event.trial].t
        assert event.trial == f"t{int(event.framework_id or -1):05d}"
        assert started[event.trial].framework_id == event.framework_id
        assert started[event.trial].configuration == event.configuration


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
        for process in (ours, other):
            process.kill()
            process.wait()
