"""The plain pool with a Job per trial, on an emulated cluster: trials as here, ends as Katib's, nothing left."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hungry_workload
from contract.runs import SPACE, Made, a_pod_trains, experiment, fixed, make
from e2e.katib_cluster import curves
from emulated.program import Program, program
from hungry_workload import MEMORY_MB
from tuneoff.base.space import Categorical, Float, SearchSpace
from tuneoff.experiment.spec import Budget, ExperimentSpec, Failures, Strategy, Timeouts, Workers, WorkloadSpec
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.run.progress import LiveRun

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SLEEPING = {"sampler": Strategy(name="random"), "search_space": SPACE, "workers": Workers(count=2)}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    folders = [str(Path(hungry_workload.__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    with program(tmp_path / "cluster", "--without-katib") as cluster:
        yield cluster


def run(cluster: Program, folder: Path, spec: ExperimentSpec, **more: Any) -> Made:
    given = {"kubeconfig": str(cluster.kubeconfig), "image": "any"}
    return make("serial", spec, folder / "results", platform="kubernetes-jobs", options=given, **more)


def test_pods_train_the_bits_of_processes_and_the_best_checkpoint_comes_back(cluster: Program, tmp_path: Path) -> None:
    same = {**fixed(5), "budget": Budget(trials=5, epochs_per_trial=3)}
    made = run(cluster, tmp_path, experiment("surrogate", **same))
    here = make("serial", experiment("surrogate", **same), tmp_path / "here")
    assert (made.record.status, made.record.reason) == ("done", None)
    assert len(curves(made.record)) == 5
    assert curves(made.record) == curves(here.record)
    assert made.record.best is not None
    assert here.record.best is not None
    assert made.record.best.trial == here.record.best.trial
    assert made.record.test is not None
    assert here.record.test is not None
    assert made.record.test.scores == here.record.test.scores
    assert len({trial.attempts[0].process for trial in made.record.trials}) == 5  # a pod each
    assert {trial.attempts[0].process_role for trial in made.record.trials} == {"pod"}
    assert all(trial.attempts[0].exited_ns is not None for trial in made.record.trials)
    assert {*EXCLUDING} <= {flag.name for flag in made.record.flags}
    assert {flag.name for flag in made.record.flags} <= {*EXCLUDING, "disturbed"}  # the latter: a busy machine
    assert cluster.runs_namespaces() == []
    assert not (made.folder / "outside.txt").exists()


def test_a_trial_over_its_time_is_killed_and_not_tried_again(cluster: Program, tmp_path: Path) -> None:
    timeouts = Timeouts(trial_seconds=3, silence_seconds=2)
    given = {**SLEEPING, "budget": Budget(trials=2, epochs_per_trial=2), "timeouts": timeouts, "failures": Failures(retries=1)}
    made = run(cluster, tmp_path, experiment("sleep", {"epoch_seconds": 30.0}, **given))
    ends = [(trial.state, trial.charged, len(trial.attempts)) for trial in made.record.trials]
    assert ends == [("timed_out", "workload", 1)] * 2
    assert {trial.cause for trial in made.record.trials} == {"timed out: silent for 2 s"}
    assert cluster.runs_namespaces() == []


def test_trials_that_run_when_the_time_is_used_up_are_cancelled(cluster: Program, tmp_path: Path) -> None:
    budget = Budget(trials=20, epochs_per_trial=5, wall_clock_seconds=5)
    made = run(cluster, tmp_path, experiment("sleep", {"epoch_seconds": 0.4}, **{**SLEEPING, "budget": budget}))
    assert (made.record.status, made.record.reason) == ("done", None)
    assert 2 < len(made.record.trials) < 20
    assert [trial.cause for trial in made.record.trials if trial.state == "cancelled"] == ["wall-clock budget used up"] * 2
    assert cluster.runs_namespaces() == []


def delete_a_pod(cluster: Program) -> None:
    pods = cluster.ask("GET", "/api/v1/pods")["items"]
    pod = next(item["metadata"] for item in pods if item["status"].get("phase") == "Running")
    cluster.ask("DELETE", f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}")


def test_a_lost_pod_is_of_the_infrastructure_and_its_trial_is_tried_again(cluster: Program, tmp_path: Path) -> None:
    def lose(live: LiveRun, folder: Path) -> bool:
        if live.running < 2 or not a_pod_trains(folder):
            return False
        delete_a_pod(cluster)
        return True

    given = {**SLEEPING, "budget": Budget(trials=2, epochs_per_trial=8), "failures": Failures(retries=1)}
    made = run(cluster, tmp_path, experiment("sleep", {"epoch_seconds": 0.3}, **given), act=lose)
    assert [trial.state for trial in made.record.trials] == ["completed"] * 2
    attempts = sorted((trial.attempts for trial in made.record.trials), key=len)
    assert [len(one) for one in attempts] == [1, 2]
    assert (attempts[1][0].state, attempts[1][0].charged) == ("superseded", "infrastructure")
    assert "training was ended by SIGTERM" in str(attempts[1][0].cause)
    assert cluster.runs_namespaces() == []


def test_a_trial_above_its_memory_fails_as_under_katib(cluster: Program, tmp_path: Path) -> None:
    takes = ("nothing", "in a child's child")
    space = SearchSpace({"learning_rate": Float(low=0.0, high=1.0), "takes": Categorical(choices=takes)})
    spec = replace(
        experiment("surrogate"),
        workload=WorkloadSpec(name="hungry", target="hungry_workload:Hungry"),
        search_space=space,
        sampler=Strategy(name="fixed"),
        configurations=tuple({"learning_rate": 0.1, "takes": text} for text in takes),
        budget=Budget(trials=2, epochs_per_trial=3),
        workers=Workers(count=2, memory_mb=MEMORY_MB),
        failures=Failures(retries=1),
    )
    made = run(cluster, tmp_path, spec)
    ends = {(trial.configuration["takes"], trial.state, trial.charged, len(trial.attempts)) for trial in made.record.trials}
    assert ends == {("nothing", "completed", None, 1), ("in a child's child", "failed", "workload", 1)}
    assert {trial.cause for trial in made.record.trials} == {None, f"out of memory: more than {MEMORY_MB:g} MB (container)"}


def test_an_interrupted_run_leaves_nothing(cluster: Program, tmp_path: Path) -> None:
    interrupt = threading.Event()

    def stop(live: LiveRun, folder: Path) -> bool:
        if a_pod_trains(folder):
            interrupt.set()
        return interrupt.is_set()

    given = {**SLEEPING, "budget": Budget(trials=20, epochs_per_trial=50)}
    made = run(cluster, tmp_path, experiment("sleep", {"epoch_seconds": 0.3}, **given), act=stop, interrupt=interrupt)
    assert made.record.status == "interrupted"
    assert {trial.state for trial in made.record.trials if trial.used_ticket} == {"cancelled"}
    assert cluster.runs_namespaces() == []
    assert not (made.folder / "outside.txt").exists()


def test_a_pod_without_an_image_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    with program(tmp_path / "cluster", "--without-katib", "--image", "known") as cluster:
        spec = experiment("surrogate", **fixed(2))
        given = {"kubeconfig": str(cluster.kubeconfig), "image": "unknown", "pending_seconds": 2}
        made = make("serial", spec, tmp_path / "results", platform="kubernetes-jobs", options=given)
        assert made.record.status == "failed"
        assert "ErrImagePull" in str(made.record.reason)
        assert cluster.runs_namespaces() == []
