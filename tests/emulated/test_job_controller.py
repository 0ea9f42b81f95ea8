"""The Job controller alone, with a clock and with pods that the test ends."""

from __future__ import annotations

from typing import Any

import pytest

from emulated.node_cluster import NAMESPACE, conditions
from katib_emulation import controllers, node
from katib_emulation.controllers import JobReconciler
from katib_emulation.objects import JOBS, PODS, Store, is_finished


class Bench:
    """A Job under control; `now` moves only by hand."""

    def __init__(self) -> None:
        self.store = Store()
        self.reconciler = JobReconciler(self.store)
        self.now = 1_000_000.0

    def monotonic(self) -> float:
        return self.now

    def submit(self, **spec: Any) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": ["true"]}]}}
        self.store.create(JOBS, {"metadata": {"name": "job"}, "spec": {"template": template, **spec}}, NAMESPACE)
        self.reconcile()

    def reconcile(self) -> float | None:
        return self.reconciler.reconcile(self.job)

    def active(self) -> list[dict[str, Any]]:
        return [pod for pod in self.store.list(PODS, NAMESPACE) if not is_finished(pod)]

    def end_pod(self, exit_code: int) -> float | None:
        [pod] = self.active()
        states = {"c": node.terminated(exit_code, None)}
        self.store.update(PODS, pod["metadata"]["name"], NAMESPACE, lambda pod: node.set_finished(pod, states))
        return self.reconcile()

    @property
    def job(self) -> dict[str, Any]:
        return self.store.get(JOBS, "job", NAMESPACE)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(controllers, "time", made)
    return made


def test_the_pauses_before_retries_are_those_of_kubernetes(bench: Bench) -> None:
    bench.submit(backoffLimit=8)
    pauses = []
    for _ in range(8):
        due = bench.end_pod(1)
        assert due is not None
        bench.now += due - 0.01
        bench.reconcile()
        assert not bench.active()
        bench.now += 0.02
        bench.reconcile()
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
        bench.now += 601
        bench.reconcile()
    assert not conditions(bench.job)
    bench.end_pod(1)
    assert "Failed" in conditions(bench.job)


def test_reconciling_again_changes_nothing(bench: Bench) -> None:
    bench.submit(backoffLimit=1)
    for code in (1, 0):
        before = bench.job, bench.store.list(PODS, NAMESPACE)
        bench.reconcile()
        assert (bench.job, bench.store.list(PODS, NAMESPACE)) == before
        bench.end_pod(code)
        bench.now += 11
        bench.reconcile()
    ended = bench.job
    bench.reconcile()
    assert bench.job == ended
    assert ended["status"]["succeeded"] == 1 == ended["status"]["failed"]
