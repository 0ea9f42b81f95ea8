"""Whole lifecycles with a real Ray, beyond what the contract of all adapters asks. Each starts Ray once: some 10 s."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from adapters.lifecycle_run import RunningLifecycle, run_lifecycle, start_lifecycle
from tuneoff.base.processes import MARK, command_line, with_mark
from tuneoff.base.space import Float, SearchSpace
from tuneoff.record.events.schema import Epoch, StepEnded, StopDecided
from waiting import until

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(240)]

ADAPTER = "tuneoff_adapters.ray_tune.adapter:RayTuneAdapter"


def processes(running: RunningLifecycle) -> list[int]:
    return with_mark(MARK, running.folder.name)


def raylets(running: RunningLifecycle) -> list[int]:
    return [pid for pid in processes(running) if "/raylet " in command_line(pid)]


# --- a model-based searcher and a pruner of Ray's ---


def test_tpe_with_asha_spends_its_budget_and_stops_at_rungs_only(tmp_path: Path) -> None:
    run = run_lifecycle(
        tmp_path,
        ADAPTER,
        space=SearchSpace({"x": Float(low=0.0, high=1.0)}),
        sampler="tpe",
        sampler_options={"n_startup_trials": 4},
        pruner="asha",
        pruner_options={"first_rung_epochs": 1, "reduction_factor": 3},
        trials=10,
        epochs=9,
    )
    assert run.exit_code == 0
    assert sorted(run.configurations) == [f"t{number:05d}" for number in range(10)]
    stops = {event.trial: event.epoch for event in run.of(StopDecided)}
    assert stops
    assert set(stops.values()) <= {1, 3}
    trained = Counter(event.trial for event in run.of(Epoch))
    assert trained == {trial: stops.get(trial, 9) for trial in run.configurations}
    assert run.most_at_once <= 2


# --- a slow start ---


def test_a_node_that_needs_longer_than_ray_waits_has_as_long_as_deploy(tmp_path: Path) -> None:
    running = start_lifecycle(tmp_path, ADAPTER, trials=2)
    until(lambda: bool(raylets(running)), 60.0)
    (raylet,) = raylets(running)
    os.kill(raylet, signal.SIGSTOP)
    time.sleep(32.0)  # Ray gives up after 30 s
    os.kill(raylet, signal.SIGCONT)
    run = running.wait(120)
    assert run.exit_code == 0
    assert sorted(run.configurations) == ["t00000", "t00001"]
    (deploy,) = [event for event in run.of(StepEnded) if event.step == "deploy"]
    assert deploy.error is None


# --- ends before the end ---


def test_an_interruption_while_ray_starts_leaves_nothing(tmp_path: Path) -> None:
    running = start_lifecycle(tmp_path, ADAPTER, trials=2)
    until(lambda: any("gcs_server" in command_line(pid) for pid in processes(running)), 60.0)
    running.interrupt()
    run = running.wait(60)
    assert run.exit_code == 3
    assert (run.left_in_home, run.left_in_temporary) == ([], [])
    assert processes(running) == []
    assert [event.step for event in run.of(StepEnded)][-1] == "undeploy"
