"""The floors of Katib on a real cluster: workers in pods, a Job per trial, Optuna over PostgreSQL (docs/katib.md)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from e2e.katib_cluster import GIVEN, IMAGE, KUBECONFIG, Cluster, Compare, curves
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord

STORAGE = os.environ.get("TUNEOFF_TEST_STORAGE", "")
pytestmark = GIVEN
OPTIONS = {"kubeconfig": KUBECONFIG, "image": IMAGE}
FLOORS = [{"name": "serial", "platform": platform, "options": OPTIONS} for platform in ("kubernetes", "kubernetes-jobs")]
FLOORS += [{"name": "optuna", "platform": "kubernetes", "options": {**OPTIONS, "storage": STORAGE}}] if STORAGE else []
WORKERS = {"count": 2, "cpus": 0.4, "memory_mb": 500}
SLEEP: dict[str, Any] = {
    "workload": {"name": "sleep", "options": {"epoch_seconds": 0.5}},
    "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "sampler": "random",
    "workers": WORKERS,
}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


def records(compare: Compare) -> dict[str, RunRecord]:
    return {f"{spec.adapter}@{spec.platform}": record for record in read_runs(compare.results) if (spec := record.run_spec())}


def test_pods_train_the_same_bits_as_processes_and_nothing_is_left(tmp_path: Path, cluster: Cluster) -> None:
    same = {"sampler": "fixed", "configurations": {"sample": 6, "seed": 3}, "budget": {"epochs_per_trial": 3}}
    compare = Compare(tmp_path, workload="surrogate", workers=WORKERS, adapters=["serial", *FLOORS], **same)
    answer = compare.run()
    assert answer.code == 0, answer.err
    found = records(compare)
    here = found.pop("serial@local")
    assert len(found) == len(FLOORS)
    for name, record in found.items():
        assert curves(record) == curves(here), name
        assert record.test is not None
        assert here.test is not None
        assert record.test.scores == here.test.scores
        assert [flag.name for flag in record.flags if flag.name.startswith(("left_", "best_", "undercounted"))] == []
        assert cluster.left_of(record.execution_id) == []
    processes = {name: {trial.attempts[0].process for trial in record.trials} for name, record in found.items()}
    assert len(processes["serial@kubernetes"]) <= 2
    assert len(processes["serial@kubernetes-jobs"]) == 6


def is_at_first_epoch(events: Path) -> bool:
    last = events.read_text().splitlines()[-1]
    return '"epoch":1,' in last


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: f"{floor['name']}@{floor['platform']}")
def test_a_lost_pod_is_replaced_and_its_trial_tried_again(tmp_path: Path, cluster: Cluster, floor: dict[str, Any]) -> None:
    compare = Compare(tmp_path, budget={"trials": 3, "epochs_per_trial": 20}, failures={"retries": 1}, adapters=[floor], **SLEEP)
    lost: list[str] = []

    def lose() -> bool:
        begun = [path for path in compare.results.glob("runs/*/*/events/pod-*") if is_at_first_epoch(path)]
        if begun and not lost:
            job = begun[0].stem.removeprefix("pod-")
            for pod in cluster.core.list_pod_for_all_namespaces(label_selector=f"job-name={job}").items:
                cluster.core.delete_namespaced_pod(pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0)
                lost.append(pod.metadata.name)
        return False

    answer = compare.interrupt(lose)
    assert answer.code == 0, answer.err
    (record,) = records(compare).values()
    assert lost
    assert [trial.state for trial in record.trials] == ["completed"] * 3
    assert sorted(len(trial.attempts) for trial in record.trials) == [1, 1, 2]
    (first, _) = next(trial.attempts for trial in record.trials if len(trial.attempts) == 2)
    assert first.charged == "infrastructure"
    assert cluster.left_of(record.execution_id) == []


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: f"{floor['name']}@{floor['platform']}")
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, cluster: Cluster, floor: dict[str, Any]) -> None:
    compare = Compare(tmp_path, budget={"trials": 30, "epochs_per_trial": 6}, adapters=[floor], **SLEEP)
    answer = compare.interrupt(compare.has_completed_trial)
    assert answer.code == 130, answer.err
    (record,) = records(compare).values()
    assert record.status == "interrupted"
    assert cluster.wait_until_gone(record.execution_id) == []


@pytest.mark.skipif(not STORAGE, reason="no database is given: TUNEOFF_TEST_STORAGE must be the URL of one for option `storage`")
def test_optuna_learns_and_prunes_in_pods(tmp_path: Path, cluster: Cluster) -> None:
    compare = Compare(
        tmp_path,
        workload="surrogate",
        sampler={"name": "tpe", "n_startup_trials": 4},
        pruner={"name": "median", "min_trials": 2},
        budget={"trials": 12, "epochs_per_trial": 5},
        workers=WORKERS,
        adapters=FLOORS[-1:],
    )
    answer = compare.run()
    assert answer.code == 0, answer.err
    (record,) = records(compare).values()
    assert len(record.trials) == 12
    assert {"completed", "pruned"} == {trial.state for trial in record.trials}
    assert record.best is not None
    assert record.best.trial == record.best.core_trial
    assert cluster.left_of(record.execution_id) == []
