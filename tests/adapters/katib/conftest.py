"""The servers that answer as a test says, an emulated cluster, and runs that are followed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.katib.fake_api import FakeApi, write_kubeconfig
from adapters.katib.followed_run import Run
from adapters.katib.katib_objects import RUNNING
from emulated.served import Served, served
from tuneoff_adapters.katib import follow
from tuneoff_adapters.kubernetes import pod_follower
from tuneoff_adapters.kubernetes.connection import Connection, Limits


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    with FakeApi(tmp_path) as api:
        yield api


@pytest.fixture
def connection(api: FakeApi) -> Iterator[Connection]:
    """A quick connection to the fake API."""
    limits = Limits(api=20.0, call=10.0, pause=0.01, longest_pause=0.02, watch=1, silence=0.3, settle=0.05)
    connection = Connection(api.kubeconfig, limits=limits)
    yield connection
    connection.close()


@pytest.fixture
def cluster() -> Iterator[Served]:
    """An emulated API server without controllers, which has a namespace `team`."""
    with served() as cluster:
        cluster.namespace("team")
        yield cluster


@pytest.fixture
def to_cluster(cluster: Served, tmp_path: Path) -> Connection:
    limits = Limits(api=5.0, call=2.0, pause=0.01)
    return Connection(write_kubeconfig(tmp_path / "kubeconfig", cluster.url), limits=limits)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hangs, hangs until the test is over."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    """Makes runs; they are ended after the test."""
    for module in (follow, pod_follower):
        monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(pod_follower, "FIND_NS", 75_000_000)  # every other look
    runs: list[Run] = []

    def make_run(*warnings: tuple[str, str, str, str], **changes: Any) -> Run:
        runs.append(Run(tmp_path, *warnings, **changes))
        runs[-1].experiment(RUNNING)
        return runs[-1]

    yield make_run
    for run in runs:
        run.follower.stop(0.0)
        run.context.events.close()


@pytest.fixture
def run(make: Callable[..., Run]) -> Run:
    """A run of two trials."""
    return make()
