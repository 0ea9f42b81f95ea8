"""Whole lifecycles with a real Ray, beyond what the contract of all adapters asks. Each starts Ray once: some 10 s."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.lifecycle_run import LifecycleRun, RunningLifecycle, run_lifecycle, start_lifecycle, undeploy_afresh
from adapters.toy_workload import FAULT_SPACE
from tuneoff.base.processes import MARK, command_line, with_mark
from tuneoff.base.space import Float, SearchSpace
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Epoch, Event, StepEnded, StopDecided, TrialStarted, WorkerDied
from tuneoff.run.supervisor.leftovers import shared_memory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ADAPTER = "tuneoff_adapters.ray_tune:RayTuneAdapter"


def seen(running: RunningLifecycle, kind: type[Event]) -> list[Any]:
    return [event for _, event in EventLog(running.folder / "events").merged() if isinstance(event, kind)]


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def processes(running: RunningLifecycle) -> list[int]:
    return with_mark(MARK, running.folder.name)


# --- failures and retries ---


FAULTS = ("none", "raise", "exit", "sigkill_once", "none")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> LifecycleRun:
    folder = tmp_path_factory.mktemp("faulty")
    return run_lifecycle(
        folder,
        ADAPTER,
        space=FAULT_SPACE,
        sampler="fixed",
        configurations=[{"x": number / 10, "fault": fault} for number, fault in enumerate(FAULTS)],
        trials=len(FAULTS),
        retries=2,
        workload_options={"folder": str(folder)},
        timeout_seconds=200,
    )


def test_deaths_are_noted_with_what_is_known(faulty: LifecycleRun) -> None:
    deaths = {event.trial: event.exit_code for event in faulty.of(WorkerDied)}
    assert deaths == {"t00002": 7, "t00003": None}


def test_the_record_says_what_was_set_but_not_the_token(faulty: LifecycleRun) -> None:
    text = (faulty.folder / "framework" / "ray.json").read_text()
    record = json.loads(text)
    assert record["environment"]["set"]["RAY_AUTH_MODE"] == "token"
    assert record["init"]["num_cpus"] == 2
    assert "RAY_AUTH_TOKEN" not in text


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
        trials=14,
        epochs=9,
    )
    assert run.exit_code == 0
    assert sorted(run.configurations) == [f"t{number:05d}" for number in range(14)]
    stops = {event.trial: event.epoch for event in run.of(StopDecided)}
    assert stops
    assert set(stops.values()) <= {1, 3}
    trained = Counter(event.trial for event in run.of(Epoch))
    assert trained == {trial: stops.get(trial, 9) for trial in run.configurations}
    assert run.most_at_once <= 2


# --- ends before the end ---


def test_after_a_killed_coordinator_a_fresh_process_ends_exactly_the_run(tmp_path: Path) -> None:
    memory = shared_memory()
    running = start_lifecycle(tmp_path, ADAPTER, trials=50, epochs=20, workload_options={"epoch_seconds": 0.2})
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        wait_until(lambda: len(seen(running, TrialStarted)) >= 2)
        assert any("ray::" in command_line(pid) for pid in processes(running))
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.wait()
        assert processes(running), "Ray's agents outlive their driver by a minute: that is what undeploy is for"
        environment = {**os.environ, MARK: running.folder.name, "TMPDIR": str(running.temporary)}
        started = time.monotonic()
        undeploy_afresh(running.folder, environment)
        assert time.monotonic() - started < 15
        assert processes(running) == []
        assert list(running.temporary.iterdir()) == []
        assert shared_memory() <= memory
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.communicate()
        running.wait(5)
    assert [(event.step, event.error) for event in seen(running, StepEnded)][-1] == ("undeploy", None)


def test_an_interruption_while_ray_starts_leaves_nothing(tmp_path: Path) -> None:
    running = start_lifecycle(tmp_path, ADAPTER, trials=2)
    wait_until(lambda: any("gcs_server" in command_line(pid) for pid in processes(running)))
    running.interrupt()
    run = running.wait(60)
    assert run.exit_code == 3
    assert (run.left_in_home, run.left_in_temporary) == ([], [])
    assert processes(running) == []
    assert [event.step for event in run.of(StepEnded)][-1] == "undeploy"
