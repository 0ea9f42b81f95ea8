"""The proxy of the fault tests: each fault is one that a client sees, and it passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.katib.fake_api import write_kubeconfig
from adapters.katib.faulty_proxy import FaultyProxy
from emulated.served import Served
from tuneoff_adapters.kubernetes.api_errors import ApiError, Unreachable
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.resources import CONFIG_MAPS, NAMESPACES

MINE = {"app": "test"}  # the cluster makes config maps of its own
ONE_TRY = Limits(api=0.1, connect=0.0, call=0.3)
PATIENT = Limits(api=20.0, call=5.0, pause=0.01, longest_pause=0.1)


@pytest.fixture
def proxy(cluster: Served) -> Iterator[FaultyProxy]:
    with FaultyProxy(cluster.url) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: FaultyProxy, tmp_path: Path) -> Iterator[Connection]:
    connection = Connection(write_kubeconfig(tmp_path / "kubeconfig", proxy.url), limits=PATIENT)
    yield connection
    connection.close()


def test_without_a_fault_it_passes_everything_on(proxy: FaultyProxy, connection: Connection) -> None:
    connection.create(CONFIG_MAPS, {"metadata": {"name": "c", "labels": MINE}}, "team")
    assert [obj["metadata"]["name"] for obj in connection.items(CONFIG_MAPS, "team", MINE)] == ["c"]
    assert [one.method for one in proxy.seen] == ["POST", "GET"]


@pytest.mark.parametrize("status", [429, 500])
def test_planted_status(proxy: FaultyProxy, connection: Connection, status: int) -> None:
    proxy.status = status
    with pytest.raises(ApiError, match=f"planted failure {status}"):
        connection.limited(ONE_TRY).get(NAMESPACES, "team")
    threading.Timer(0.05, proxy.restore).start()
    assert connection.get(NAMESPACES, "team")


def test_hanging_and_refusing(proxy: FaultyProxy, connection: Connection) -> None:
    proxy.is_hanging = True
    with pytest.raises(Unreachable, match="no answer in time"):
        connection.limited(ONE_TRY).get(NAMESPACES, "team")
    proxy.refuse()
    with pytest.raises(Unreachable, match="connection refused"):
        connection.limited(ONE_TRY).get(NAMESPACES, "team")
    threading.Timer(0.05, proxy.restore).start()
    assert connection.get(NAMESPACES, "team")


def test_delay(proxy: FaultyProxy, connection: Connection) -> None:
    proxy.delay_seconds = 0.1
    start = time.monotonic()
    assert connection.get(NAMESPACES, "team")
    assert time.monotonic() - start >= 0.1


@pytest.mark.parametrize("is_away", [False, True])
def test_watch_goes_on_over_a_cut_and_over_an_absence(
    cluster: Served, proxy: FaultyProxy, connection: Connection, is_away: bool
) -> None:
    def create(name: str) -> None:
        body = {"metadata": {"name": name, "labels": MINE}}
        assert cluster.ask("POST", "/api/v1/namespaces/team/configmaps", body)[0] == 201

    changes = iter(connection.watch(CONFIG_MAPS, "team", MINE))
    create("one")
    assert next(changes)[1]["metadata"]["name"] == "one"
    if is_away:
        proxy.refuse()
        create("two")  # while nobody can see it
        threading.Timer(0.05, proxy.restore).start()
    else:
        proxy.cut()
        create("two")
    change, obj = next(changes)
    assert (change, obj["metadata"]["name"]) == ("ADDED", "two")
