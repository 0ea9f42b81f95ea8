"""Managed servers: who may talk to them, what a run says when one ends, and that nothing of them stays, whatever is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from adapters.lifecycle_run import start_lifecycle
from builders.specs import toy_spec
from tuneoff.base.processes import children, command_line, descendants, end_all, is_alive
from tuneoff.errors import InfrastructureError
from tuneoff.experiment.spec import Workers
from tuneoff.record.events.schema import StepEnded
from tuneoff.run.supervisor.run import short_path
from tuneoff_adapters.optuna import servers
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.options import storage_of, study_plan
from tuneoff_adapters.optuna.servers import StorageServer, start_server
from tuneoff_adapters.optuna.study import create_study
from waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder as a run has it: PostgreSQL's user must reach it, and pytest's own is closed to others."""
    with tempfile.TemporaryDirectory(suffix=f' ä,"{"x" * 100}') as path:
        Path(path).chmod(0o755)
        with short_path(Path(path)) as short:
            yield short / "storage"


def skip_without(kind: str) -> dict[str, object]:
    storage = {"kind": kind, "managed": True}
    if reason := OptunaAdapter.refuse(toy_spec("optuna", options={"storage": storage}, workers=Workers(count=1))):
        pytest.skip(reason)
    return storage


def started(kind: str, folder: Path, workers: int = 2) -> StorageServer:
    skip_without(kind)
    return start_server(kind, folder, workers, start_seconds=150.0)


def segments(pid: int) -> list[str]:
    """Return the System V segments of shared memory that a process made."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return [line for line in lines if int(line.split()[4]) == pid]


def mine() -> list[int]:
    return [pid for pid in children(os.getpid()) if is_alive(pid)]


def listening(pids: list[int]) -> list[str]:
    """Return the ports on which processes listen, by what the kernel says of their sockets."""
    sockets = set()
    for pid in pids:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [fields[1] for fields in lines if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets]


def refuses_other_passwords(kind: str, url: str) -> None:
    place = urlsplit(url.replace("+psycopg", ""))
    if kind == "postgresql":
        psycopg = pytest.importorskip("psycopg")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(place.geturl().replace(str(place.password), "other"))
    elif kind == "redis":
        for password, answer in ((place.password, b"+OK"), ("other", b"-WRONGPASS"), (None, b"-NOAUTH")):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(place.path)
                client.sendall(b"PING\r\n" if password is None else f"AUTH {password}\r\n".encode())
                assert client.recv(100).startswith(answer)
    assert not [pid for pid in mine() if place.password and place.password in command_line(pid, None)]


@pytest.mark.parametrize("kind", ["postgresql", "redis", "grpc", "mlflow"])
def test_a_server_is_asked_and_replaced_by_nobody_else_and_leaves_neither_process_nor_file(kind: str, folder: Path) -> None:
    before = mine()
    server = started(kind, folder)
    try:
        assert server.cpu_ns() > 0
        assert server.dead() is None
        below = descendants(os.getpid())
        on_loopback = (
            [f"0100007F:{urlsplit(server.url).port:04X}"] if kind == "mlflow" else []
        )  # its client knows no Unix sockets
        assert listening(below) == on_loopback
        paths = [path for path in folder.iterdir() if path.is_socket()]
        assert len(paths) == {"grpc": 2, "mlflow": 0}.get(kind, 1)
        for path in paths:
            assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0  # so nobody else can connect, or make a file there
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                pid, uid, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            assert (pid in below, uid) == (True, path.stat().st_uid)
        refuses_other_passwords(kind, server.url)
        if kind in ("postgresql", "redis"):
            storage = storage_of({"kind": kind, "managed": True}).at(server.url)
            assert create_study(study_plan(toy_spec("optuna"), folder, storage, "s")).trials == []
        processes = [process for _, process in server._processes]
    finally:
        server.stop()
        server.stop()
    assert kind == "mlflow" or all(process.returncode != -signal.SIGKILL for process in processes)  # asked, they end in time
    assert mine() == before
    assert not folder.exists()


def test_the_look_at_ports_sees_a_stranger() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        assert listening([os.getpid()]) == [f"0100007F:{stranger.getsockname()[1]:04X}"]


def test_a_postgresql_killed_without_own_memory_leaves_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which the kernel keeps of a killed process, unless told otherwise: what is seen before shows that the look finds it."""
    monkeypatch.setattr(shutil, "which", lambda program: None)  # no `unshare`
    server = started("postgresql", folder)
    pid = next(pid for pid in mine() if "postgres" in command_line(pid))
    assert len(segments(pid)) == 1
    end_all(lambda: [pid])
    assert server.dead() == "the managed PostgreSQL must run until the run's end, but ended with exit code -9"
    assert until(lambda: not segments(pid), 5.0)
    server.stop()


def test_an_initdb_that_is_killed_leaves_no_shared_memory(folder: Path) -> None:
    if not servers._can_be_apart():
        pytest.skip("the kernel gives this user no namespace of its own")
    skip_without("postgresql")
    before = {*os.listdir("/dev/shm")}, Path("/proc/sysvipc/shm").read_text().count("\n")
    start = "import sys; from pathlib import Path; from tuneoff_adapters.optuna.servers import *"
    command = [sys.executable, "-c", f"{start}; start_server('postgresql', Path({str(folder)!r}), 2, 60.0)"]
    process = subprocess.Popen(command)
    until(lambda: any(shared_memory_of(pid) for pid in descendants(process.pid)))
    end_all(lambda: [process.pid] if is_alive(process.pid) else [])
    process.wait()
    assert {*os.listdir("/dev/shm")} == before[0]
    assert Path("/proc/sysvipc/shm").read_text().count("\n") == before[1]


def shared_memory_of(pid: int) -> list[str]:
    """Return PostgreSQL's files of shared memory as a process sees them."""
    with contextlib.suppress(OSError):
        return [name for name in os.listdir(f"/proc/{pid}/root/dev/shm") if name.startswith("PostgreSQL")]
    return []


def test_a_server_that_does_not_start_is_told_with_its_own_words(folder: Path) -> None:
    before = mine()
    with pytest.raises(
        InfrastructureError, match=r"PostgreSQL did not start and ended with exit code 1: .*FATAL: .*max_connections"
    ):
        started("postgresql", folder, workers=1_000_000)
    assert mine() == before
    assert not folder.exists()


def test_a_run_whose_server_ends_is_charged_to_the_infrastructure(tmp_path: Path) -> None:
    storage = skip_without("redis")
    running = start_lifecycle(
        tmp_path,
        "tuneoff_adapters.optuna.adapter:OptunaAdapter",
        workload="tuneoff_workloads.sleep:Sleep",
        workload_options={"epoch_seconds": 0.1},
        trials=200,
        options={"storage": storage},
    )
    until(lambda: [*running.folder.glob("events/worker-*")])
    (server,) = (pid for pid in descendants(running.process.pid) if "redis-server" in command_line(pid))
    os.kill(server, signal.SIGKILL)
    run = running.wait(60)
    failed = [event for event in run.of(StepEnded) if event.error]
    assert [event.charged for event in failed] == ["infrastructure"], (failed, run.log[-3000:])
    assert "the managed Redis must run until the run's end" in str(failed[0].error)
    assert "storage" not in run.left_in_temporary
