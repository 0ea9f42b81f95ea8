"""Who is charged where a storage's server is away, and what a user reads then."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from builders.specs import toy_spec
from tuneoff.errors import InfrastructureError
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.options import storage_of, study_plan
from tuneoff_adapters.optuna.server_errors import server_away
from tuneoff_adapters.optuna.study import open_storage
from tuneoff_adapters.optuna.worker import _cause


@pytest.fixture
def port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def of_storage(scheme: str, port: int) -> None:
    url = f"{scheme}://tuneoff:$STORAGE_PASSWORD@127.0.0.1:{port}/0"
    storage = storage_of(url).at(url)
    plan = study_plan(toy_spec("optuna"), Path("/nonexistent"), storage=storage, study_name="s")
    open_storage(plan).get_all_studies()


def of_proxy(scheme: str, port: int) -> None:
    grpc = pytest.importorskip("grpc")
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary("/optuna/GetAllStudies")(b"")


@pytest.mark.parametrize(
    ("driver", "scheme", "call"),
    [("psycopg", "postgresql+psycopg", of_storage), ("redis", "redis", of_storage), ("grpc", "grpc", of_proxy)],
)
def test_a_server_that_is_away_is_charged_to_the_infrastructure_in_one_line(
    driver: str, scheme: str, call: Callable[[str, int], None], port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(driver)
    monkeypatch.setenv("STORAGE_PASSWORD", "secret")
    with pytest.raises(InfrastructureError) as raised, object.__new__(OptunaAdapter)._blaming_server():
        call(scheme, port)
    text = str(raised.value)
    assert text.startswith("the server of option `storage` must answer until the run's end, but its driver says: ")
    assert f"127.0.0.1:{port}" in text or f"port {port}" in text
    assert "secret" not in text
    assert "\n" not in text
    away = _cause(raised.value.__cause__ or raised.value)  # in a worker
    assert (type(away), str(away)) == (InfrastructureError, text)


class RpcError(Exception):
    """Stands for gRPC's, of the same name and module."""

    __module__ = "grpc"

    def code(self) -> SimpleNamespace:
        return SimpleNamespace(name=self.args[0])

    def details(self) -> str:
        return "no study"


def test_what_a_server_answers_stays_optunas() -> None:
    psycopg = pytest.importorskip("psycopg")
    assert server_away(psycopg.errors.DeadlockDetected("deadlock detected")) is None
    assert server_away(psycopg.errors.AdminShutdown("terminating connection due to administrator command")) is not None
    assert server_away(RpcError("NOT_FOUND")) is None
    assert server_away(RpcError("UNAVAILABLE")) is not None
    assert server_away(ValueError("Cannot tell a FAIL trial.")) is None
    first, second = ValueError("of the commit"), ValueError("of the roll-back")
    first.__cause__, second.__context__ = second, first  # SQLAlchemy's, where a server goes away in a commit
    assert server_away(first) is None
    second.__cause__, second.__context__ = first, psycopg.errors.AdminShutdown("terminating connection")
    assert server_away(first) is not None
