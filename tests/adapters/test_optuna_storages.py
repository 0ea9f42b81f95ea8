"""Whole runs on each storage that can be had here: what is measured of it, and what stays at a URL."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import optuna
import pytest

from adapters.lifecycle_run import LifecycleRun, run_lifecycle, start_lifecycle, undeploy_afresh
from adapters.toy_workload import FAULT_SPACE
from builders.specs import toy_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.base.layout import OUTSIDE
from tuneoff.base.processes import end_all, in_session
from tuneoff.experiment.spec import Workers
from tuneoff.record.events.schema import Stage, StorageUsed, TrialEnded, WorkerDied
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.options import storage_of, study_plan
from tuneoff_adapters.optuna.plan import StudyPlan
from tuneoff_adapters.optuna.servers import start_server
from tuneoff_adapters.optuna.study import open_storage
from tuneoff_adapters.optuna.worker_state import WorkerStateFile
from waiting import until

pytestmark = pytest.mark.slow(first=True)

ADAPTER = "tuneoff_adapters.optuna.adapter:OptunaAdapter"
STORAGES: list[dict[str, Any]] = [  # of the others: tests/contract/test_optuna_storages.py
    {"kind": "journal"},
    {"kind": "sqlite"},
    {"kind": "mlflow", "managed": True},
]


def skip_without(storage: dict[str, Any]) -> None:
    if reason := OptunaAdapter.refuse(toy_spec("optuna", options={"storage": storage}, workers=Workers(count=1))):
        pytest.skip(reason)


@pytest.fixture(params=["postgresql", "redis"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of somebody's server, whose password is in the environment."""
    skip_without({"kind": request.param, "managed": True})
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(request.param, Path(folder) / "storage", workers=4, start_seconds=60.0)
        monkeypatch.setenv("TEST_PASSWORD", str(urlsplit(server.url).password))
        path = Path(folder) / "storage" / {"redis": "redis.sock", "postgresql": ".s.PGSQL.5432"}[request.param]
        begin, end = {"redis": ("redis://", "0"), "postgresql": ("postgresql+psycopg://tuneoff", "postgres")}[request.param]
        with relayed(path) as port:
            yield f"{begin}:$TEST_PASSWORD@127.0.0.1:{port}/{end}"
        server.stop()


@contextlib.contextmanager
def relayed(path: Path) -> Iterator[int]:
    """Give a port behind which a Unix socket is, as a server elsewhere has it."""

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(path))
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=pass_on, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def plan_of(run_dir: Path, url: str) -> StudyPlan:
    name = f"tuneoff-{run_dir.name}"
    return study_plan(toy_spec("optuna"), run_dir, storage=storage_of(url).at(url), study_name=name)


def studies(run_dir: Path, url: str) -> list[str]:
    return optuna.get_all_study_names(open_storage(plan_of(run_dir, url)))


@pytest.mark.parametrize("storage", STORAGES, ids=lambda storage: storage["kind"])
def test_what_a_storage_was_asked_and_what_it_cost_is_measured(storage: dict[str, Any], tmp_path: Path) -> None:
    skip_without(storage)
    workers = 1 if storage["kind"] == "mlflow" else 2
    run = run_lifecycle(tmp_path, ADAPTER, trials=8, workers=workers, options={"storage": storage})
    assert run.exit_code == 0, run.log
    (used,) = run.of(StorageUsed)
    states = [WorkerStateFile(run.folder / "framework" / f"worker-{worker}").read() for worker in range(workers)]
    assert used.operations == sum(state.operations for state in states) >= 8 * 5  # ask, one parameter, three reports, tell
    assert used.client_cpu_ns == sum(state.cpu_ns for state in states) > 0
    assert (used.bytes or 0) >= (storage["kind"] != "sqlite")  # whose first pages have room
    assert (used.server_cpu_ns or 0) >= ("managed" in storage)


def test_a_study_at_a_url_is_removed_by_its_run_or_by_its_undeploy_and_its_password_nowhere_written(
    url: str, tmp_path: Path
) -> None:
    run = run_lifecycle(tmp_path, ADAPTER, trials=4, workers=2, options={"storage": url})
    assert run.exit_code == 0, run.log
    assert studies(run.folder, url) == []
    assert not (run.folder / OUTSIDE).exists()
    assert [event.bytes for event in run.of(StorageUsed)] == [None]  # others may use it too
    slow = {"epoch_seconds": 0.2}
    killed = start_lifecycle(tmp_path, ADAPTER, trials=50, workers=2, options={"storage": url}, workload_options=slow)
    until(lambda: (killed.folder / "framework" / "asks").exists())
    end_all(lambda: in_session(killed.process.pid))
    killed.wait(10)
    assert studies(killed.folder, url) == [f"tuneoff-{killed.folder.name}"]
    undeploy_afresh(killed.folder)
    assert studies(killed.folder, url) == []
    assert not (killed.folder / OUTSIDE).exists()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"$TEST_PASSWORD" in written
    assert os.environb[b"TEST_PASSWORD"] not in written


@pytest.fixture(scope="module")
def beaten(tmp_path_factory: pytest.TempPathFactory) -> LifecycleRun:
    """One trial's worker is killed in its second epoch; the other trials last longer than two heartbeats."""
    storage = {"kind": "postgresql", "managed": True, "heartbeat_seconds": 1}
    skip_without(storage)
    folder = tmp_path_factory.mktemp("beaten")
    return run_lifecycle(
        folder,
        ADAPTER,
        space=FAULT_SPACE,
        sampler="fixed",
        configurations=[{"x": index / 8, "fault": "none" if index else "sigkill_once"} for index in range(8)],
        trials=8,
        retries=1,
        workload_options={"folder": str(folder), "epoch_seconds": 0.5},
        options={"storage": storage},
    )


def test_how_long_the_heartbeat_takes_to_find_a_dead_worker_is_timed(beaten: LifecycleRun) -> None:
    assert beaten.exit_code == 0, beaten.log
    assert len(beaten.of(WorkerDied)) == 1
    (found,) = [event for event in beaten.of(Stage) if event.name == "heartbeat"]
    assert 1e9 < found.duration_ns < 20e9  # two heartbeats after the last one, at somebody's next ask


def test_with_a_heartbeat_each_trial_still_ends_once(beaten: LifecycleRun) -> None:
    assert beaten.ends == {(f"t{number:05d}", 1 if number else 2): "completed" for number in range(8)}


def test_over_mlflow_trials_fail_and_are_stopped_as_over_others(tmp_path: Path) -> None:
    storage = {"kind": "mlflow", "managed": True}
    skip_without(storage)
    faults = ["none", "sigkill", "raise", "nan", "none"]
    configurations = [{"x": index / 8, "fault": fault} for index, fault in enumerate(faults)]
    run = run_lifecycle(
        tmp_path,
        ADAPTER,
        space=FAULT_SPACE,
        sampler="fixed",
        pruner="scripted",
        stops={configuration_digest(configurations[4]): 2},
        configurations=configurations,
        trials=len(faults),
        workers=1,
        options={"storage": storage},
        timeout_seconds=250,
    )
    assert run.exit_code == 0, run.log
    names = [f"t{number:05d}" for number in range(len(faults))]
    assert [run.configurations[name]["fault"] for name in names] == faults
    states = ["completed", None, "failed", "failed", "pruned"]  # an attempt whose process died says nothing
    assert [run.ends.get((name, 1)) for name in names] == states
    assert [death.trial for death in run.of(WorkerDied)] == [names[1]]


@pytest.mark.parametrize(("hold", "failed"), [("train_epoch", 1), ("close", 0)])
def test_a_living_trial_that_the_heartbeat_takes_for_dead_does_not_end_the_run(hold: str, failed: int, tmp_path: Path) -> None:
    run = run_lifecycle(
        tmp_path,
        ADAPTER,
        workload="adapters.toy_workload:Holding",
        trials=16,
        workers=2,
        workload_options={"folder": str(tmp_path), "epoch_seconds": 0.2, "hold": hold},
        options={"storage": {"kind": "sqlite", "heartbeat_seconds": 1}},
    )
    assert run.exit_code == 0, run.log
    ends = run.of(TrialEnded)
    assert [end.state for end in ends].count("completed") == 16 - failed
    text = "Optuna's heartbeat took the living trial for dead"
    assert text in run.log
    found = [(end.epochs, end.charged, text in str(end.cause)) for end in ends if end.state == "failed"]
    assert found == [(2, "framework", True)] * failed
