"""What is wrong with the way to a cluster is told by the real command in one line, in under 15 s, before anything is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.faulty_cluster import FaultyCluster, faulty_cluster
from e2e.katib_cluster import Answer, Compare
from tuneoff.record.run_record import RunRecord

pytestmark = pytest.mark.slow

MOST_SECONDS = 15.0
SMALL: dict[str, Any] = {
    "workload": "surrogate",
    "sampler": "random",
    "budget": {"trials": 2, "epochs_per_trial": 1},
    "workers": {"count": 1},
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyCluster]:
    with faulty_cluster(tmp_path_factory.mktemp("good")) as cluster:
        yield cluster


def compare(folder: Path, options: dict[str, Any]) -> tuple[Answer, RunRecord]:
    command = Compare(folder, adapters=[{"name": "katib", "platform": "kubernetes", "options": options}], **SMALL)
    answer = command.run()
    return answer, command.katib()


def check_refused(folder: Path, cluster: FaultyCluster, *parts: str, **options: Any) -> None:
    """Check that a run is refused in one line with these parts, in time, and that nothing was made."""
    answer, record = compare(folder, cluster.options(**options))
    assert (answer.code, record.status, record.charged) == (1, "failed", "infrastructure")
    assert answer.seconds < MOST_SECONDS
    (line,) = [line for line in answer.err.splitlines() if line.startswith("tuneoff: ")]
    for part in parts:
        assert part in line
    assert "Traceback" not in answer.err + answer.out
    assert cluster.changes() == []
    assert cluster.namespaces() == []


def test_a_run_that_is_not_refused_is_seen_to_make_something(good: FaultyCluster, tmp_path: Path) -> None:
    """Control of the checks below: the probe sees what a run makes."""
    answer, record = compare(tmp_path, good.options())
    assert (answer.code, record.status) == (0, "done")
    assert any(change.startswith("POST /api/v1/namespaces") for change in good.changes())
    good.proxy.seen.clear()


def test_no_cluster(good: FaultyCluster, tmp_path: Path) -> None:
    good.proxy.refuse()
    try:
        check_refused(tmp_path, good, good.proxy.url, "cannot be reached (connection refused)")
    finally:
        good.proxy.restore()


def test_a_server_that_takes_requests_and_never_answers(good: FaultyCluster, tmp_path: Path) -> None:
    good.proxy.is_hanging = True
    try:
        check_refused(tmp_path, good, good.proxy.url, "cannot be reached (no answer in time")
    finally:
        good.proxy.restore()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"kubeconfig": "/nowhere/config"}, "there is no kubeconfig at /nowhere/config"),
        ({"context": "no-such-context"}, "(context 'no-such-context')"),
    ],
)
def test_wrong_kubeconfig(good: FaultyCluster, tmp_path: Path, options: dict[str, str], part: str) -> None:
    check_refused(tmp_path, good, part, **options)


def test_a_kubeconfig_with_an_old_token(good: FaultyCluster, tmp_path: Path) -> None:
    content = json.loads(good.kubeconfig.read_text())
    content["users"][0]["user"]["token"] = "old"
    stale = tmp_path / "stale"
    stale.write_text(json.dumps(content))
    check_refused(tmp_path, good, "does not accept the kubeconfig's credentials", kubeconfig=str(stale))


def test_a_cluster_without_katib(tmp_path: Path) -> None:
    with faulty_cluster(tmp_path / "cluster", "--without-katib") as cluster:
        check_refused(tmp_path, cluster, "Katib is not installed", "kubeflow.org")
