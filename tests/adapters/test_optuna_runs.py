"""Whole runs of the Optuna adapter, beyond what the contract of all adapters asks; each is made once, tests read its events."""

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
FAULTS = ("none", "raise", "nan", "exit", "none", "system_exit", "sigkill", "sigkill_once", "none", "none")
FAULTY = [{"x": index / 32, "fault": fault} for index, fault in enumerate(FAULTS)]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> LifecycleRun:
    return run_lifecycle(tmp_path_factory.mktemp("crowded"), ADAPTER, sampler="default", trials=22, workers=4, epochs=1)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> LifecycleRun:
    folder = tmp_path_factory.mktemp("faulty")
    return run_lifecycle(
        folder,
        ADAPTER,
        space=FAULT_SPACE,
        sampler="fixed",
        configurations=FAULTY,
        trials=len(FAULTY),
        retries=1,
        workload_options={"folder": str(folder)},
    )


@pytest.fixture(scope="module")
def halved(tmp_path_factory: pytest.TempPathFactory) -> LifecycleRun:
    return run_lifecycle(tmp_path_factory.mktemp("halved"), ADAPTER, pruner="asha", trials=20, epochs=9)


def states(run: LifecycleRun) -> Counter[TrialState]:
    """Return Optuna's own states of the trials of a finished run."""
    journal = str(run.folder / "framework" / "journal.log")
    storage = JournalStorage(JournalFileBackend(journal))
    study = optuna.load_study(study_name=None, storage=storage)
    return Counter(trial.state for trial in study.get_trials(deepcopy=False))


@pytest.mark.parametrize(("name", "trials", "workers"), [("crowded", 22, 4), ("halved", 20, 2)])
def test_exactly_the_budgeted_trials_run_on_the_given_workers(
    name: str, trials: int, workers: int, request: pytest.FixtureRequest
) -> None:
    run: LifecycleRun = request.getfixturevalue(name)
    submitted = run.of(schema.TrialSubmitted)
    assert sorted(event.trial for event in submitted) == [f"t{number:05d}" for number in range(trials)]
    assert sorted(int(event.framework_id or -1) for event in submitted) == list(range(trials))
    assert len(run.of(schema.TrialStarted)) == len(run.ends) == trials
    assert run.of(schema.TrialRefused) == []
    assert run.most_at_once <= workers
    assert {event.slot for event in run.of(schema.TrialStarted)} <= set(range(workers))
    assert all(event.waited_ns == 0 for event in run.of(schema.TrialStarted))


def test_asks_and_tells_are_timed(crowded: LifecycleRun) -> None:
    stages = Counter((stage.name, stage.trial) for stage in crowded.of(schema.Stage))
    assert stages == Counter((name, trial) for name in ("ask", "tell") for trial in crowded.configurations)


def test_the_log_has_no_line_per_trial(crowded: LifecycleRun) -> None:
    assert crowded.log == ""


def test_halving_stops_at_rungs_and_never_after_the_last_epoch(halved: LifecycleRun) -> None:
    ends = halved.of(schema.TrialEnded)
    assert {(end.state, end.epochs) for end in ends} <= {("pruned", 1), ("pruned", 3), ("completed", 9)}
    pruned = sum(end.state == "pruned" for end in ends)
    assert 0 < pruned < 20
    assert states(halved) == {TrialState.COMPLETE: 20 - pruned, TrialState.PRUNED: pruned}
    stopped = {(end.trial, end.epochs) for end in ends if end.state == "pruned"}
    assert {(event.trial, event.epoch) for event in halved.of(schema.StopDecided)} == stopped


def test_deaths_are_recorded_with_their_cause(faulty: LifecycleRun) -> None:
    kinds = {trial: item["fault"] for trial, item in faulty.configurations.items()}
    deaths = {(kinds[death.trial or ""], death.attempt): death.exit_code for death in faulty.of(schema.WorkerDied)}
    assert deaths == {
        ("exit", 1): 7,
        ("sigkill", 1): -9,
        ("sigkill", 2): -9,
        ("sigkill_once", 1): -9,
    }


def test_no_trial_of_the_study_stays_running(faulty: LifecycleRun) -> None:
    assert states(faulty) == {TrialState.COMPLETE: 5, TrialState.FAIL: 7}  # two of the failed ones were tried again


def test_one_worker_with_one_seed_proposes_the_same_twice(tmp_path: Path) -> None:
    runs = [run_lifecycle(tmp_path, ADAPTER, sampler="tpe", trials=14, workers=1, epochs=1) for _ in range(2)]
    assert runs[0].configurations == runs[1].configurations


@pytest.mark.parametrize("sampler", ["fixed", "random"])
def test_the_budget_stays_exact_when_workers_are_killed_at_any_moment(tmp_path: Path, sampler: str) -> None:
    trials, generator = 60, random.Random(7)
    killed: set[int] = set()
    listed = sample_distinct(TOY_SPACE, trials, 1) if sampler == "fixed" else []
    run = start_lifecycle(tmp_path, ADAPTER, sampler=sampler, configurations=listed, trials=trials, epochs=1, retries=20)
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
    if listed:
        given = {configuration_digest(item) for item in listed}
        assert {configuration_digest(item) for item in result.configurations.values()} == given


def test_a_budget_of_epochs_cancels_and_ends_the_run(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, ADAPTER, trials=20, epochs=3, epochs_total=10)
    assert run.exit_code == 0, run.log
    assert len(run.of(schema.Epoch)) == 10
    assert len(run.of(schema.TrialSubmitted)) <= 6  # each worker stops asking after the first trial that is cut off


def test_a_budget_of_time_ends_the_run(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, ADAPTER, trials=500, epochs=2, wall_clock_seconds=0.5, workload_options={"epoch_seconds": 0.05})
    assert run.exit_code == 0, run.log
    assert 2 <= len(run.of(schema.TrialSubmitted)) < 40


def test_what_optuna_raises_in_a_worker_fails_the_step_with_its_text(tmp_path: Path) -> None:
    run = run_lifecycle(tmp_path, ADAPTER, sampler="annealing")
    (error,) = [step.error for step in run.of(schema.StepEnded) if step.error]
    assert run.exit_code == FAILED
    assert "'annealing'" in error
    assert run.of(schema.StepEnded)[-1].step == "undeploy"
