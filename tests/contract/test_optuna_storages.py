"""What a storage could break of the adapter's contract, on each that can be had here; the default has all of it.

What a server leaves, and where it listens: tests/adapters/test_optuna_servers.py. Not on SQLite and MLflow, where most runs
of the contract are refused: two workers may get one enqueued configuration there.
"""

from typing import Any, ClassVar

import pytest

from builders.specs import toy_spec
from contract.few_runs import FewRuns, shown_by
from tuneoff.record.events.schema import StorageUsed
from tuneoff.trust.check.evidence import AdapterCheck, AdapterEvidence
from tuneoff_adapters.optuna.adapter import OptunaAdapter

pytestmark = [pytest.mark.slow(first=True), pytest.mark.timeout(600)]
HONEST = [check for check in shown_by(["honest-max"]) if check.id == "best.value"]  # so that its run is made


class _OnStorage(FewRuns):
    """Workers at once, values that a storage may not hold, and a worker that dies."""

    adapter = "optuna"
    runs = frozenset({"honest-max", "odd-values", "scripted", "retried"})

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _installed(cls) -> None:
        if reason := OptunaAdapter.refuse(toy_spec("optuna", options=cls.options)):
            pytest.skip(reason)

    @pytest.mark.parametrize("check", HONEST, ids=["honest"])
    def test_what_it_was_asked_and_what_it_cost_is_measured(self, check: AdapterCheck, evidence: AdapterEvidence) -> None:
        made = evidence.runs["honest-max"]
        (used,) = made.of(StorageUsed)
        assert used.operations >= len(made.record.trials) * 3  # ask, one parameter, tell
        assert used.client_cpu_ns > 0
        assert (used.bytes or 0) > 0
        assert (used.server_cpu_ns or 0) >= ("managed" in self.options["storage"])


class _OnLock(_OnStorage):
    """The study is the default's; what another lock could break are workers at once, and one that dies with it."""

    runs = frozenset({"honest-max", "retried"})


class TestOpenLock(_OnLock):
    options: ClassVar[dict[str, Any]] = {"storage": {"kind": "journal", "lock": "open"}}


class TestSymlinkLock(_OnLock):
    options: ClassVar[dict[str, Any]] = {"storage": {"kind": "journal", "lock": "symlink"}}


class TestPostgresql(_OnStorage):
    runs = _OnStorage.runs | {"coordinator-killed", "interrupted"}  # an un-deploy that knows no server, and one that ends soon
    options: ClassVar[dict[str, Any]] = {"storage": {"kind": "postgresql", "managed": True}}


class TestRedis(_OnStorage):
    runs = _OnStorage.runs | {"faulty"}
    options: ClassVar[dict[str, Any]] = {"storage": {"kind": "redis", "managed": True}}


class TestGrpc(_OnStorage):
    options: ClassVar[dict[str, Any]] = {"storage": {"kind": "grpc", "managed": True}}
