"""The port that jobs come to: strangers keep nobody out, and nothing that was changed on its way is taken."""

from __future__ import annotations

import contextlib
import pickle
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tuneoff_platforms.remote import channel, job
from tuneoff_platforms.remote.channel import Channel, TamperedError, greet
from tuneoff_platforms.remote.coordinator_server import STRANGERS, CoordinatorServer
from tuneoff_platforms.remote.job import AGENT, WORKER, Endpoint
from waiting import until

HOST = "127.0.0.1"
STRANGERS_HERE = 1000
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))
from tuneoff_platforms.remote.coordinator_server import CoordinatorServer
server = CoordinatorServer("127.0.0.1", 2, lambda kind, *others: print(kind, flush=True))
print(server.endpoint.port, server.endpoint.key.hex(), flush=True)
for line in sys.stdin:
    with open("/dev/null"):
        print("opened", flush=True)
"""


class Arrivals(list[tuple[Any, ...]]):
    """What a door let in."""

    def __call__(self, *arrival: Any) -> None:
        self.append(arrival)


@pytest.fixture
def arrivals() -> Arrivals:
    return Arrivals()


@pytest.fixture
def server(arrivals: Arrivals) -> Iterator[CoordinatorServer]:
    listening = CoordinatorServer(HOST, 2, arrivals)
    yield listening
    listening.close()
    for *_, arrived in arrivals:
        arrived.close()


def test_only_who_knows_the_key_comes_in_and_a_silent_stranger_keeps_nobody_out(
    server: CoordinatorServer, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "CONNECT_SECONDS", 0.0)
    with socket.create_connection((HOST, server.endpoint.port)):
        with pytest.raises(ConnectionResetError, match="has let this connection go"):
            Endpoint(HOST, server.endpoint.port, b"another").connect(AGENT, 0, 7, "h")
        with contextlib.closing(server.endpoint.connect(AGENT, 1, 7, "h")):
            until(lambda: arrivals)
    assert [arrival[:4] for arrival in arrivals] == [(AGENT, 1, 7, "h")]


@pytest.mark.parametrize("sent", [b"", bytes(2000), b"\xff" * 70_000, b"x" * 32 + b"\xff\xff" + b"x" * 66_000])
def test_what_a_stranger_sends_is_an_end_for_him_alone(server: CoordinatorServer, arrivals: Arrivals, sent: bytes) -> None:
    with socket.create_connection((HOST, server.endpoint.port)) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)
        with contextlib.suppress(ConnectionError):
            while connection.recv(65_536):
                pass
    with contextlib.closing(server.endpoint.connect(WORKER, 0, 7, 1)):
        until(lambda: arrivals)


@pytest.mark.parametrize(("listen", "address"), [("127.0.0.1", "0100007F"), ("", "00000000")])
def test_it_listens_where_it_is_told(arrivals: Arrivals, listen: str, address: str) -> None:
    listening = CoordinatorServer(HOST, 1, arrivals, listen)
    try:
        lines = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        port = f"{listening.endpoint.port:04X}"
        assert [line for line in lines if line.endswith(f":{port}")] == [f"{address}:{port}"]
    finally:
        listening.close()


def test_who_answers_without_the_key_gets_nothing() -> None:
    with socket.create_server((HOST, 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.sendall(bytes(32))
                connection.recv(4096)
                connection.sendall(bytes(32))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(TamperedError, match="must know the run's key, but who answers"):
            greet(HOST, other.getsockname()[1], b"key", ("agent", 0, 7, "h"))
        thread.join()


def test_a_greeting_has_one_deadline_whatever_trickles(server: CoordinatorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff_platforms.remote.coordinator_server.GREETING_SECONDS", 0.5)
    began = time.monotonic()
    with socket.create_connection((HOST, server.endpoint.port)) as connection, contextlib.suppress(ConnectionError):
        connection.settimeout(0.05)
        connection.recv(32)
        while time.monotonic() - began < 10:
            connection.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                if not connection.recv(1):
                    break
    assert 0.4 < time.monotonic() - began < 9


@pytest.mark.slow
def test_a_thousand_strangers_use_up_no_descriptors_and_a_job_comes_in() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < STRANGERS_HERE + 200:
        pytest.skip(f"needs {STRANGERS_HERE + 200} open files, but `ulimit -Hn` is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, STRANGERS_HERE + 200), hard))
    process = subprocess.Popen([sys.executable, "-c", LIMITED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port, key = process.stdout.readline().split()
        with contextlib.ExitStack() as strangers:
            for number in range(STRANGERS_HERE):
                with contextlib.suppress(OSError):
                    connection = strangers.enter_context(socket.create_connection((HOST, int(port)), timeout=0.5))
                    connection.sendall(b"x" * (number % 2))  # the others are silent
            with contextlib.closing(Endpoint(HOST, int(port), bytes.fromhex(key)).connect(AGENT, 0, 7, "h")):
                assert process.stdout.readline() == "agent\n"
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "opened\n"
    finally:
        process.kill()
        process.communicate()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_as_many_jobs_as_there_are_come_in_at_once(arrivals: Arrivals) -> None:
    workers = 100
    listening = CoordinatorServer(HOST, workers, arrivals)
    ways: list[Channel] = []
    threads = [
        threading.Thread(target=lambda number=number: ways.append(listening.endpoint.connect(AGENT, number, 7, "h")))
        for number in range(2 * workers)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: len(arrivals) == 2 * workers)
        assert sorted(arrival[1] for arrival in arrivals) == list(range(2 * workers))
    finally:
        listening.close()
        for connection in [*ways, *(arrival[4] for arrival in arrivals)]:
            connection.close()
    assert STRANGERS < 100  # a few dozen


class Between:
    """Two ends of a connection, and whoever is between them."""

    def __init__(self) -> None:
        self._sockets = [*_pair(), *_pair()]
        job_end, self.from_job, self.to_coordinator, coordinator_end = self._sockets
        self.keys = bytes(32), bytes(range(32))
        self.job = Channel(job_end, *self.keys)
        self.coordinator = Channel(coordinator_end, *reversed(self.keys))

    def taken(self, *contents: Any) -> list[bytes]:
        """Let the job send messages, and return what is on the way of each."""
        frames = []
        for content in contents:
            self.job.send(content)
            frames.append(self.from_job.recv(65_536))
        return frames

    def close(self) -> None:
        for one in self._sockets:
            one.close()


def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server((HOST, 0)) as server:
        connection = socket.create_connection(server.getsockname())
        return connection, server.accept()[0]


@pytest.fixture
def between() -> Iterator[Callable[[], Between]]:
    with contextlib.ExitStack() as ends:

        def new() -> Between:
            path = Between()
            ends.callback(path.close)
            return path

        yield new


class Touch:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_what_arrives_as_it_was_sent_is_taken(between: Callable[[], Between]) -> None:
    path = between()
    path.to_coordinator.sendall(b"".join(path.taken({"a": 1.5}, None, "x" * 3000)))
    assert [path.coordinator.recv() for _ in range(3)] == [{"a": 1.5}, None, "x" * 3000]
    path.job.close()
    path.from_job.close()
    path.to_coordinator.close()
    with pytest.raises(EOFError):
        path.coordinator.recv()


def test_no_byte_can_be_changed_or_removed(between: Callable[[], Between]) -> None:
    frame = between().taken("message")[0]
    for position in range(len(frame)):
        path = between()
        sent, after = path.taken("message", "after")
        changed = sent[:position] + bytes([sent[position] ^ 1]) + sent[position + 1 :]
        path.to_coordinator.sendall(changed)
        with pytest.raises(TamperedError, match="message 1 was changed on its way"):
            path.coordinator.recv()
        path = between()
        sent, after = path.taken("message", "after")
        path.to_coordinator.sendall(sent[:position] + sent[position + 1 :] + after)
        with pytest.raises(TamperedError, match="message 1 was changed on its way"):
            path.coordinator.recv()


Replaced = Callable[[list[bytes], list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("replaced", "taken"),
    [
        (lambda sent, _: [sent[0], sent[0]], 1),  # repeated
        (lambda sent, _: [sent[1], sent[0]], 0),  # in another order
        (lambda sent, _: [sent[1]], 0),  # one left out
        (lambda sent, other: [other[0]], 0),  # of another connection
        (lambda sent, _: [sent[0][41:]], 0),  # a body in place of a header
        (lambda sent, _: [bytes(73)], 0),
    ],
)
def test_no_message_can_be_repeated_moved_left_out_or_come_from_elsewhere(
    between: Callable[[], Between], replaced: Replaced, taken: int
) -> None:
    path, other = between(), between()
    other.job = Channel(other._sockets[0], bytes(reversed(range(32))), bytes(32))
    sent = path.taken("x", "second")
    path.to_coordinator.sendall(b"".join(replaced(sent, other.taken("x"))))
    for _ in range(taken):
        path.coordinator.recv()
    with pytest.raises(TamperedError):
        path.coordinator.recv()
    path.from_job.sendall(path.to_coordinator.recv(65_536))
    with pytest.raises(TamperedError, match="the other end got a message that was changed on its way"):
        path.job.recv()


def test_a_message_does_not_come_back_as_an_answer(between: Callable[[], Between]) -> None:
    path = between()
    path.from_job.sendall(path.taken("x")[0])
    with pytest.raises(TamperedError):
        path.job.recv()


def test_nothing_is_unpickled_that_the_other_end_did_not_send(between: Callable[[], Between], tmp_path: Path) -> None:
    code = pickle.dumps(Touch(tmp_path / "OWNED"))
    for header in (struct.pack("!i", len(code)), struct.pack(">BQ", 0, len(code)), struct.pack(">BQ", 0, len(code)) + bytes(32)):
        path = between()
        path.taken("first")
        path.to_coordinator.sendall(header + code + bytes(64))
        with pytest.raises(TamperedError):
            path.coordinator.recv()
    assert not (tmp_path / "OWNED").exists()
    pickle.loads(code)
    assert (tmp_path / "OWNED").exists()  # it would have been seen


@pytest.mark.slow
def test_the_rest_of_a_message_that_never_comes_is_not_waited_for(
    between: Callable[[], Between], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "REST_SECONDS", 1)
    path = between()
    path.to_coordinator.sendall(path.taken("message")[0][:-1])
    with pytest.raises(TamperedError, match="a part of a message came, but not its rest within 1 s"):
        path.coordinator.recv()
