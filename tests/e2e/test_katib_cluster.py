"""Katib on a real cluster, given by TUNEOFF_TEST_KUBECONFIG and TUNEOFF_TEST_IMAGE (docs/katib.md); skipped without."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from builders.faulty_examples import example_of
from e2e.katib_cluster import GIVEN, IMAGE, LABEL, Cluster, Compare, curves, entry
from tuneoff.base.identity import configuration_digest
from tuneoff.record.flag_meanings import EXCLUDING

pytestmark = GIVEN

SURROGATE: dict[str, Any] = {
    "workload": "surrogate",
    "sampler": "fixed",
    "configurations": {"sample": 4, "seed": 3},
    "budget": {"epochs_per_trial": 3},
    "workers": {"count": 2},
}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Compare:
    compare = Compare(tmp_path_factory.mktemp("honest"), adapters=["serial", entry()], **SURROGATE)
    answer = compare.run()
    assert answer.code == 0, answer.err
    return compare


def test_a_run_trains_the_same_bits_as_without_a_framework(honest: Compare) -> None:
    records = honest.records()
    assert len(curves(records["serial"])) == 4
    assert curves(records["katib"]) == curves(records["serial"])


def test_katib_names_the_same_best_trial_as_core_and_its_checkpoint_is_tested(honest: Compare) -> None:
    record = honest.katib()
    assert record.best is not None
    assert record.best.trial == record.best.core_trial
    assert record.test is not None
    assert record.test.trial == record.best.trial
    assert [flag.name for flag in record.flags if flag.name.startswith(("best_", "left_"))] == []


def test_every_trial_was_a_pod_of_its_own_with_its_times(honest: Compare) -> None:
    record = honest.katib()
    assert len({trial.attempts[-1].process for trial in record.trials}) == len(record.trials)
    for trial in record.trials:
        (attempt,) = trial.attempts
        assert attempt.submitted_ns is not None
        assert attempt.started_ns is not None
        assert attempt.submitted_ns <= attempt.started_ns
    assert {flag.name for flag in record.flags}.isdisjoint(EXCLUDING)


def test_nothing_is_left_in_the_cluster(honest: Compare, cluster: Cluster) -> None:
    assert cluster.left_of(honest.katib().execution_id) == []


def test_what_is_left_would_be_seen(cluster: Cluster) -> None:
    """Control: the check above finds a namespace with the label of a run."""
    execution = f"control-{os.urandom(4).hex()}"
    cluster.make_namespace(f"tuneoff-{execution}", {LABEL: execution})
    try:
        assert cluster.left_of(execution) == [f"namespace tuneoff-{execution}"]
    finally:
        cluster.delete_namespace(f"tuneoff-{execution}")
    assert cluster.wait_until_gone(execution) == []


def test_a_network_trained_in_pods_is_tested_by_its_own_checkpoint(tmp_path: Path, cluster: Cluster) -> None:
    workload = {"name": "mnist_mlp", "options": {"dataset": "digits"}}
    compare = Compare(
        tmp_path,
        workload=workload,
        sampler="random",
        budget={"trials": 3, "epochs_per_trial": 3},
        workers={"count": 2},
        adapters=[entry()],
    )
    answer = compare.run()
    assert answer.code == 0, answer.err
    record = compare.katib()
    assert record.test is not None
    assert record.test.checkpoint_sha256
    assert (record.test.scores["test_accuracy"] or 0.0) > 0.5
    assert cluster.left_of(record.execution_id) == []


def test_faults_and_stops_end_as_documented(tmp_path: Path, cluster: Cluster) -> None:
    kinds = (None, "raise", "nan", "exit_code", None)
    configurations = [example_of(kind, skip=index // 4) for index, kind in enumerate(kinds)]  # type: ignore[arg-type]
    compare = Compare(
        tmp_path,
        workload="faulty",
        search_space={"learning_rate": {"type": "float", "low": 1e-6, "high": 1.0, "log": True}},
        sampler="fixed",
        configurations=configurations,
        pruner="scripted",
        stops=[{"index": 4, "after_epoch": 1}],
        budget={"epochs_per_trial": 3},
        workers={"count": 2},
        adapters=[entry()],
    )
    answer = compare.run()
    assert answer.code == 0, answer.err
    states = {trial.digest: trial.state for trial in compare.katib().trials}
    assert [states[configuration_digest(item)] for item in configurations] == [
        "completed",
        "failed",
        "failed",
        "failed",
        "pruned",
    ]
    assert cluster.left_of(compare.katib().execution_id) == []


def test_an_image_that_cannot_be_pulled_ends_the_run_with_the_pods_own_reason(tmp_path: Path, cluster: Cluster) -> None:
    image = f"{IMAGE.partition('@')[0].rpartition(':')[0] or 'tuneoff'}-missing:none"
    compare = Compare(tmp_path, adapters=[entry(image=image, pending_seconds=20)], **SURROGATE)
    answer = compare.run()
    record = compare.katib()
    assert (answer.code, record.status) == (1, "failed")
    assert "ErrImagePull" in (record.reason or "")
    assert cluster.left_of(record.execution_id) == []


def test_ctrl_c_ends_the_pods_and_leaves_nothing(tmp_path: Path, cluster: Cluster) -> None:
    compare = Compare(
        tmp_path,
        workload={"name": "sleep", "options": {"epoch_seconds": 1.0}},
        search_space={"x": {"type": "float", "low": 0.0, "high": 1.0}},
        sampler="random",
        budget={"trials": 20, "epochs_per_trial": 3},
        workers={"count": 2},
        adapters=[entry()],
    )
    answer = compare.interrupt(compare.has_completed_trial)
    assert answer.code == 130
    assert answer.seconds < 15
    assert "Traceback" not in answer.err
    record = compare.katib()
    assert record.status == "interrupted"
    assert any(trial.state == "completed" for trial in record.trials)
    assert cluster.wait_until_gone(record.execution_id) == []


def test_a_run_in_a_namespace_that_is_there_leaves_it_as_it_was(tmp_path: Path, cluster: Cluster) -> None:
    namespace = f"given-{os.urandom(4).hex()}"
    cluster.make_namespace(namespace, {"katib.kubeflow.org/metrics-collector-injection": "enabled"})
    try:
        cluster.make_config_map("tuneoff", namespace)
        before = cluster.content_of(namespace)
        compare = Compare(tmp_path, adapters=[entry(namespace=namespace)], **SURROGATE)
        answer = compare.run()
        assert answer.code == 0, answer.err
        assert cluster.left_of(compare.katib().execution_id) == []
        assert before <= cluster.content_of(namespace) <= {*before, *named(cluster, namespace, "kube-root-ca.crt")}
    finally:
        cluster.delete_namespace(namespace)


def named(cluster: Cluster, namespace: str, name: str) -> set[tuple[str, str]]:
    """Return what of that name is there: a cluster puts its certificate into each namespace, a moment late."""
    return {item for item in cluster.content_of(namespace) if item[0] == name}
