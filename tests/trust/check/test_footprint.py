"""The probes of the conformance runs see what is planted, and leave alone what others use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tuneoff.base.processes import MARK
from tuneoff.trust.check import footprint
from tuneoff.trust.check.footprint import Footprint, Leftover, ListeningSocket, RunTraces, all_listeners, left_since, listeners_of
from tuneoff.trust.check.one_run import processes_of

RUN = f"r{uuid4().hex[:10]}"  # nobody else's processes carry it
WAIT = "import sys; print(flush=True); sys.stdin.read()"
LISTEN = f"import socket, sys; server = socket.create_server((sys.argv[1], 0), family=int(sys.argv[2])); {WAIT}"
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(footprint, "SETTLE_SECONDS", 0.1)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(footprint, "shared_folders", lambda: {path})
    return path


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python code in a process and wait for its first line."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def left(before: Footprint, listeners: tuple[ListeningSocket, ...] = (), pids: Iterable[int] = ()) -> list[Leftover]:
    seen = RunTraces(pids=set(pids), listeners=dict.fromkeys(listeners, 0))
    return left_since(before, f"{RUN}-abcdef", seen)


@pytest.mark.parametrize(
    ("address", "family", "is_loopback"),
    [
        ("127.0.0.1", socket.AF_INET, True),
        ("127.0.0.9", socket.AF_INET, True),
        ("0.0.0.0", socket.AF_INET, False),
        ("::1", socket.AF_INET6, True),
        ("::", socket.AF_INET6, False),
    ],
)
def test_a_listener_of_a_run_is_seen_with_its_address(start: Start, address: str, family: int, is_loopback: bool) -> None:
    if family == socket.AF_INET6 and not Path("/proc/net/tcp6").exists():
        pytest.skip("no IPv6 on this machine")
    process = start(LISTEN, address, str(int(family)), **{MARK: f"{RUN}-abcdef"})
    assert processes_of(RUN) == [process.pid]
    (listener,) = listeners_of(processes_of(RUN))
    assert (listener.address, listener.is_loopback) == (address, is_loopback)


def test_a_look_notes_every_process_and_who_holds_which_port(start: Start) -> None:
    first, second = (start(LISTEN, "127.0.0.1", str(int(socket.AF_INET)), **{MARK: f"{RUN}-abcdef"}).pid for _ in range(2))
    seen = RunTraces()
    seen.look([first, second])
    assert seen.pids == {first, second}
    assert sorted(seen.listeners.values()) == sorted([first, second])
    assert seen.listeners == {**listeners_of([first]), **listeners_of([second])}


def test_processes_of_every_execution_of_a_run_are_its_processes(start: Start) -> None:
    ours = {start(WAIT, **{MARK: f"{RUN}-{name}"}).pid for name in ("abcdef", "ghijkl")}
    start(WAIT, **{MARK: f"{RUN}0-abcdef"})
    assert set(processes_of(RUN)) == ours


def test_a_mapped_loopback_address_is_loopback() -> None:
    assert ListeningSocket(inode="1", address="::ffff:127.0.0.1", port=1).is_loopback
    assert not ListeningSocket(inode="1", address="::ffff:10.0.0.1", port=1).is_loopback


def test_nothing_planted_is_nothing_left(temporary: Path) -> None:
    assert left(Footprint.now()) == []


def test_a_port_of_the_run_that_still_listens_is_found_whoever_holds_it(temporary: Path) -> None:
    before = Footprint.now()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (listener,) = [item for item in all_listeners() if item.port == port and item.address == "127.0.0.1"]
        assert left(before) == []  # another program's
        assert left(before, (listener,)) == [Leftover("port", f"127.0.0.1:{port}")]
    assert left(before, (listener,)) == []


@pytest.mark.parametrize("name", ["session_{run}-abcdef", "psm_{pid}"])
def test_a_temporary_file_that_is_named_after_the_run_is_found(temporary: Path, name: str) -> None:
    before = Footprint.now()
    path = temporary / name.format(run=RUN, pid=4711)
    path.touch()
    (temporary / "somebody_else_s").touch()
    assert left(before, pids={4711}) == [Leftover("temporary file", str(path))]


def test_a_temporary_file_that_the_run_was_seen_to_use_is_found(temporary: Path, start: Start) -> None:
    before, path, seen = Footprint.now(), temporary / "scratch", RunTraces()
    process = start(f"file = open({str(path)!r}, 'w'); {WAIT}")
    seen.look([process.pid])
    assert seen.has(path, RUN)
    assert not [item for item in left_since(before, RUN, seen) if item.kind == "temporary file"]  # in use
    process.kill()
    process.wait()
    assert left_since(before, RUN, seen) == [Leftover("temporary file", str(path))]
    assert left_since(before, RUN, RunTraces()) == []  # another program's


def test_a_semaphore_that_its_maker_has_mapped_by_another_name_is_found(temporary: Path, start: Start) -> None:
    before, name, seen = Footprint.now(), f"mp-{os.urandom(4).hex()}", RunTraces()
    process = start(f"import _multiprocessing; kept = _multiprocessing.SemLock(1, 1, 1, '/{name}', False); {WAIT}")
    try:
        seen.look([process.pid])
        assert {item.kind for item in left_since(before, RUN, seen)} == {"process"}  # in use
        process.kill()
        process.wait()
        assert left_since(before, RUN, seen) == [Leftover("shared memory", f"/dev/shm/sem.{name}")]
        assert left_since(before, RUN, RunTraces()) == []  # another program's
    finally:
        Path(f"/dev/shm/sem.{name}").unlink(missing_ok=True)


def test_a_temporary_folder_that_a_living_process_uses_is_no_leftover(temporary: Path, start: Start) -> None:
    folder = temporary / "session"
    folder.mkdir()
    process = start(WAIT, TMPDIR=str(folder))
    assert footprint.unused([folder]) == set()
    process.kill()
    process.wait()
    assert footprint.unused([folder]) == {folder}
