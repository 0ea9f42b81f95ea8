"""Whole runs of the Optuna adapter, beyond what the contract of all adapters asks: what study and workers make of them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from adapters.lifecycle_run import LifecycleRun, run_lifecycle, start_lifecycle
from adapters.toy_workload import FAULT_SPACE
from builders.specs import TOY_SPACE
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.strategies import sample_distinct
from tuneoff.record.events import schema
from tuneoff.run.lifecycle import FAILED

pytestmark = pytest.mark.slow

ADAPTER = "tuneoff_adapters.optuna.adapter:OptunaAdapter"
FAULTS = ("none", "raise", "exit", "system_exit", "sigkill", "sigkill_once", "none")


def states(run: LifecycleRun) -> Counter[TrialState]:
    """Return Optuna's own states of the trials of a finished run."""
    storage = JournalStorage(JournalFileBackend(str(run.folder / "framework" / "journal.log")))
    return Counter(trial.state for trial in optuna.load_study(study_name=None, storage=storage).get_trials(deepcopy=False))


def test_halving_stops_at_rungs_within_an_exact_budget_and_logs_nothing_per_trial(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, ADAPTER, pruner="asha", trials=20, epochs=9, workers=4)
    submitted, started = run.of(schema.TrialSubmitted), run.of(schema.TrialStarted)
    assert sorted(event.trial for event in submitted) == [f"t{number:05d}" for number in range(20)]
    assert sorted(int(event.framework_id or -1) for event in submitted) == list(range(20))
    assert (len(started), len(run.ends), run.of(schema.TrialRefused)) == (20, 20, [])
    assert {event.slot for event in started} <= set(range(4))
    assert {event.waited_ns for event in started} == {0}
    ends = run.of(schema.TrialEnded)
    assert {(end.state, end.epochs) for end in ends} <= {("pruned", 1), ("pruned", 3), ("completed", 9)}
    stopped = {(end.trial, end.epochs) for end in ends if end.state == "pruned"}
    assert 0 < len(stopped) < 20
    assert {(event.trial, event.epoch) for event in run.of(schema.StopDecided)} == stopped
    assert states(run) == {TrialState.COMPLETE: 20 - len(stopped), TrialState.PRUNED: len(stopped)}
    stages = Counter((stage.name, stage.trial) for stage in run.of(schema.Stage))
    assert stages == Counter((name, trial) for name in ("ask", "tell") for trial in run.configurations)
    assert run.log == ""


def test_deaths_have_their_cause_and_no_trial_of_the_study_stays_running(tmp_path: Path) -> None:
    run = run_lifecycle(
        tmp_path,
        ADAPTER,
        space=FAULT_SPACE,
        sampler="fixed",
        configurations=[{"x": index / 32, "fault": fault} for index, fault in enumerate(FAULTS)],
        trials=len(FAULTS),
        retries=1,
        workload_options={"folder": str(tmp_path)},
    )
    kinds = {trial: item["fault"] for trial, item in run.configurations.items()}
    deaths = {(kinds[death.trial or ""], death.attempt): death.exit_code for death in run.of(schema.WorkerDied)}
    assert deaths == {("exit", 1): 7, ("sigkill", 1): -9, ("sigkill", 2): -9, ("sigkill_once", 1): -9}
    assert states(run) == {TrialState.COMPLETE: 3, TrialState.FAIL: 6}  # two of the failed ones were tried again


def test_the_budget_stays_exact_when_workers_are_killed_at_any_moment(tmp_path: Path) -> None:
    trials, generator = 60, random.Random(7)
    killed: set[int] = set()
    listed = sample_distinct(TOY_SPACE, trials, 1)
    run = start_lifecycle(tmp_path, ADAPTER, sampler="fixed", configurations=listed, trials=trials, epochs=1, retries=20)
    deadline = time.monotonic() + 60
    while run.process.poll() is None and len(killed) < 6 and time.monotonic() < deadline:
        busy = {
            int(path.name.split("-")[1]) for path in (run.folder / "events").glob("worker-*") if "submitted" in path.read_text()
        }
        for pid in busy - killed:
            killed.add(pid)
            time.sleep(generator.random() * 0.02)  # not to make a race pass, but to hit different moments
            with contextlib.suppress(ProcessLookupError):  # the run ended meanwhile
                os.kill(pid, signal.SIGKILL)
    result = run.wait(60)
    assert result.exit_code == 0, result.log
    assert 2 <= len(result.of(schema.WorkerDied)) <= len(killed)  # an idle worker's death at the very end goes unseen
    first = [event.trial for event in result.of(schema.TrialSubmitted) if event.attempt == 1]
    assert len(first) == len(set(first)) == trials
    assert {event.trial for event in result.of(schema.Epoch)} == set(first)  # here no supervisor writes the end of one killed
    assert states(result)[TrialState.COMPLETE] == trials
    assert set(map(configuration_digest, result.configurations.values())) == set(map(configuration_digest, listed))


def test_a_budget_of_epochs_cancels_and_ends_the_run(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, ADAPTER, trials=20, epochs=3, epochs_total=10)
    assert run.exit_code == 0, run.log
    assert len(run.of(schema.Epoch)) == 10
    assert len(run.of(schema.TrialSubmitted)) <= 6  # each worker stops asking after the first trial that is cut off


def test_what_optuna_raises_in_a_worker_fails_the_step_with_its_text(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, ADAPTER, sampler="annealing")
    (error,) = [step.error for step in run.of(schema.StepEnded) if step.error]
    assert run.exit_code == FAILED
    assert "'annealing'" in error
    assert run.of(schema.StepEnded)[-1].step == "undeploy"
