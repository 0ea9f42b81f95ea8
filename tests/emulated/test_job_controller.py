"""The Job controller alone, with a clock and with pods that the test ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulated.node_cluster import NAMESPACE, conditions
from katib_emulation import jobs as job_controller
from katib_emulation import pod_status
from katib_emulation.jobs import JobController
from katib_emulation.objects import JOBS, PODS
from katib_emulation.store import Store


class Bench:
    """A Job under control; `time` moves only by hand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.controller = JobController(store)
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def submit(self, **spec: Any) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": ["true"]}]}}
        self.store.create(JOBS, {"metadata": {"name": "job"}, "spec": {"template": template, **spec}}, NAMESPACE)
        self.reconcile()

    def reconcile(self) -> None:
        self.controller.reconcile(NAMESPACE, "job")

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.controller.reconcile_due()

    def active(self) -> list[dict[str, Any]]:
        return [pod for pod in self.store.list(PODS, NAMESPACE) if not pod_status.is_finished(pod)]

    def end_pod(self, exit_code: int) -> None:
        [pod] = self.active()
        states = {"c": pod_status.terminated(exit_code, None)}
        self.store.update(PODS, pod["metadata"]["name"], NAMESPACE, lambda pod: pod_status.set_finished(pod, states))
        self.reconcile()

    @property
    def job(self) -> dict[str, Any]:
        return self.store.get(JOBS, "job", NAMESPACE)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    store = Store(tmp_path)
    made = Bench(store)
    monkeypatch.setattr(job_controller, "time", made)
    yield made
    store.close()


def test_the_pauses_before_retries_are_those_of_kubernetes(bench: Bench) -> None:
    bench.submit(backoffLimit=8)
    pauses = []
    for _ in range(8):
        bench.end_pod(1)
        assert not bench.active()
        due = bench.controller.next_due()
        assert due is not None
        bench.pass_time(due - 0.01)
        assert not bench.active()
        bench.pass_time(0.01)
        assert len(bench.active()) == 1
        pauses.append(round(due, 3))
    assert pauses == [10, 20, 40, 80, 160, 320, 600, 600]
    bench.end_pod(1)
    assert conditions(bench.job)["Failed"] == "BackoffLimitExceeded"
    assert bench.job["status"]["failed"] == 9


def test_a_limit_that_is_not_given_is_six_retries(bench: Bench) -> None:
    bench.submit()
    for _ in range(6):
        bench.end_pod(1)
        bench.pass_time(600)
    assert not conditions(bench.job)
    bench.end_pod(1)
    assert "Failed" in conditions(bench.job)


def test_a_deadline_first_deletes_the_pod_and_then_fails_the_job(bench: Bench) -> None:
    bench.submit(activeDeadlineSeconds=5)
    bench.pass_time(4.99)
    assert not conditions(bench.job)
    bench.pass_time(0.02)
    assert conditions(bench.job) == {"FailureTarget": "DeadlineExceeded"}
    assert bench.active()[0]["metadata"]["deletionTimestamp"]
    bench.end_pod(143)
    assert conditions(bench.job) == {"FailureTarget": "DeadlineExceeded", "Failed": "DeadlineExceeded"}
    assert not bench.store.list(PODS, NAMESPACE)


def test_the_pauses_count_for_the_deadline(bench: Bench) -> None:
    bench.submit(activeDeadlineSeconds=15, backoffLimit=6)
    bench.end_pod(1)
    bench.pass_time(10)
    bench.end_pod(1)
    bench.pass_time(5)
    assert conditions(bench.job)["Failed"] == "DeadlineExceeded"


def test_reconciling_again_changes_nothing(bench: Bench) -> None:
    bench.submit(backoffLimit=1)
    for code in (1, 0):
        before = bench.job, bench.store.list(PODS, NAMESPACE)
        bench.reconcile()
        assert (bench.job, bench.store.list(PODS, NAMESPACE)) == before
        bench.end_pod(code)
        bench.pass_time(10)
    ended = bench.job
    bench.reconcile()
    assert bench.job == ended
    assert ended["status"]["succeeded"] == 1 == ended["status"]["failed"]
