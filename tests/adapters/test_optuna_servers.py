"""Managed servers: who may talk to them, what a run says when one ends, and that nothing of them stays, whatever is killed."""

from __future__ import annotations

import contextlib
import json
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
from urllib.parse import unquote, urlsplit

import pytest

from adapters.lifecycle_run import start_lifecycle
from builders.specs import toy_spec
from tuneoff.base.processes import children, command_line, descendants, end_all, is_alive
from tuneoff.errors import InfrastructureError
from tuneoff.experiment.spec import Workers
from tuneoff.record.events.schema import StepEnded
from tuneoff_adapters.optuna import servers
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.servers import StorageServer, start_server
from waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder as a run may have it: PostgreSQL's user must reach it, and pytest's own is closed to others."""
    with tempfile.TemporaryDirectory(prefix="with a blank ") as path:
        yield Path(path) / "storage"


def started(kind: str, folder: Path, workers: int = 2) -> StorageServer:
    options = {"storage": {"kind": kind, "managed": True}}
    if reason := OptunaAdapter.refuse(toy_spec("optuna", options=options, workers=Workers(count=1))):
        pytest.skip(reason)
    return start_server(kind, folder, workers, start_seconds=150.0)


def segments(pid: int) -> list[str]:
    """Return the System V segments of shared memory that a process made."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return [line for line in lines if int(line.split()[4]) == pid]


def mine() -> list[int]:
    return [pid for pid in children(os.getpid()) if is_alive(pid)]


@pytest.mark.parametrize("kind", ["postgresql", "redis", "grpc", "mlflow"])
def test_a_stopped_server_leaves_neither_process_nor_file(kind: str, folder: Path) -> None:
    before = mine()
    server = started(kind, folder)
    assert folder.exists()
    assert len(mine()) > len(before)
    assert server.cpu_ns() > 0
    assert server.dead() is None
    processes = [process for _, process in server._processes]
    server.stop()
    server.stop()
    assert kind == "mlflow" or all(process.returncode != -signal.SIGKILL for process in processes)  # asked, they end in time
    assert mine() == before
    assert not folder.exists()


def listening(pids: list[int]) -> list[str]:
    """Return the ports on which processes listen, by what the kernel says of their sockets."""
    sockets = set()
    for pid in pids:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [fields[1] for fields in lines if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets]


def test_mlflow_listens_on_loopback_alone(folder: Path) -> None:
    """Its client knows no Unix sockets."""
    server = started("mlflow", folder)
    try:
        assert listening(descendants(os.getpid())) == [f"0100007F:{urlsplit(server.url).port:04X}"]
    finally:
        server.stop()


@pytest.mark.parametrize("kind", ["postgresql", "redis", "grpc"])
def test_a_server_can_be_asked_and_replaced_by_nobody_else(kind: str, folder: Path) -> None:
    server = started(kind, folder)
    try:
        below = descendants(os.getpid())
        assert listening(below) == []
        paths = [path for path in folder.iterdir() if path.is_socket()]
        assert len(paths) == (2 if kind == "grpc" else 1)
        for path in paths:
            assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0  # so nobody else can connect, or make a file there
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                pid, uid, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            assert pid in below
            assert uid == path.stat().st_uid
    finally:
        server.stop()
    with socket.create_server(("127.0.0.1", 0)) as stranger:  # the look at ports sees one
        assert listening([os.getpid()]) == [f"0100007F:{stranger.getsockname()[1]:04X}"]


def test_postgresql_takes_its_password_alone(folder: Path) -> None:
    server = started("postgresql", folder)
    psycopg = pytest.importorskip("psycopg")
    url = server.url.replace("+psycopg", "")
    try:
        with psycopg.connect(url) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(url.replace(str(urlsplit(url).password), "other"))
    finally:
        server.stop()


def test_redis_takes_its_password_alone(folder: Path) -> None:
    server = started("redis", folder)
    place = urlsplit(server.url)
    try:
        for password, answer in ((place.password, b"+OK"), ("other", b"-WRONGPASS"), (None, b"-NOAUTH")):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(unquote(place.path))
                client.sendall(b"PING\r\n" if password is None else f"AUTH {password}\r\n".encode())
                assert client.recv(100).startswith(answer)
        assert str(place.password) not in command_line(mine()[-1], None)
    finally:
        server.stop()


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
    started("postgresql", folder).stop()  # or skip
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


@pytest.mark.parametrize("began", ["asks", "events/worker-*"])  # in setup, and among the trials
def test_a_run_whose_server_ends_is_charged_to_the_infrastructure(began: str, tmp_path: Path) -> None:
    storage = {"kind": "redis", "managed": True}
    if reason := OptunaAdapter.refuse(toy_spec("optuna", options={"storage": storage})):
        pytest.skip(reason)
    running = start_lifecycle(
        tmp_path,
        "tuneoff_adapters.optuna.adapter:OptunaAdapter",
        workload="tuneoff_workloads.sleep:Sleep",
        workload_options={"epoch_seconds": 0.1},
        trials=200,
        options={"storage": storage},
    )
    find = lambda: [pid for pid in descendants(running.process.pid) if "redis-server" in command_line(pid)]  # noqa: E731
    until(lambda: [*running.folder.glob(began), *(running.folder / "framework").glob(began)])
    os.kill(until(find)[0], signal.SIGKILL)
    run = running.wait(60)
    failed = [event for event in run.of(StepEnded) if event.error]
    assert [event.charged for event in failed] == ["infrastructure"], (failed, run.log[-3000:])
    assert "the managed Redis must run until the run's end" in str(failed[0].error)
    assert "storage" not in run.left_in_temporary


@pytest.mark.parametrize("kind", ["postgresql", "redis"])
def test_a_server_is_reached_whatever_tmpdir_is_called(kind: str, tmp_path: Path) -> None:
    storage = {"kind": kind, "managed": True}
    if reason := OptunaAdapter.refuse(toy_spec("optuna", options={"storage": storage})):
        pytest.skip(reason)
    content = {"workload": "null", "adapters": [{"name": "optuna", "options": {"storage": storage}}], "warm_up": False}
    (tmp_path / "null.yaml").write_text(json.dumps({**content, "budget": {"trials": 2, "epochs_per_trial": 1}}))
    command = [sys.executable, "-m", "tuneoff", "compare", "null.yaml", "--output", "d", "--no-report", "--json"]
    with tempfile.TemporaryDirectory(suffix=f' ä,"{"x" * 100}') as folder:
        Path(folder).chmod(0o755)  # PostgreSQL's user must reach it
        environment = {**os.environ, "TMPDIR": folder}
        answer = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280)
        assert os.listdir(folder) == []
    assert answer.returncode == 0, answer.stderr
    (run,) = json.loads(answer.stdout)["runs"]
    assert (run["status"], "left_behind" in run["flags"]) == ("done", False)
