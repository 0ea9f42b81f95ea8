"""`tuneoff watch --serve` over raw sockets: what it refuses, what a slow or greedy client gets, and that nothing is written."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from builders.live_folders import Folder, snapshot
from tell.live.client import exchange, get, made_folder, made_site, place_of
from tuneoff.errors import ExperimentError
from tuneoff.tell.live.server import MOST_REQUESTS, LiveServer, serving
from tuneoff.tell.live.site import Site
from waiting import until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return made_folder(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def site(folder: Folder) -> Site:
    return made_site(folder)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[LiveServer]:
    with serving(site, "127.0.0.1", 0) as made:
        yield made


def test_the_pages_are_served(server: LiveServer) -> None:
    page = get(server)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.body.endswith("<h1>report of results</h1>")
    for body in (page.body, get(server, "/live").body):
        assert "1 of 6 runs ended" in body
    assert json.loads(get(server, "/state.json?x=1").body)["ended"] == 1
    assert {get(server, target).headers["location"] for target in ("/report", "/report/")} == {"/"}
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_head_has_the_headers_alone(server: LiveServer) -> None:
    reply = get(server, method="HEAD")
    assert (reply.status, reply.body) == (200, "")
    assert int(reply.headers["content-length"]) == len(get(server).body)


@pytest.mark.parametrize("target", ["/", "/live", "/state.json", "/report/", "/nothing"])
def test_every_answer_has_the_headers_that_protect_it(server: LiveServer, target: str) -> None:
    headers = get(server, target).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert ("unsafe" in policy) is (target == "/")  # that has a policy of its own, too
    assert "access-control-allow-origin" not in headers
    assert "python" not in headers["server"].lower()


def test_the_record_that_the_report_links_to_is_served_and_nothing_beside_it(server: LiveServer, folder: Folder) -> None:
    spec = folder.specs["serial", 0]
    place = f"/runs/{spec.run_id}/{spec.run_id}-1"
    assert json.loads(get(server, f"{place}/run.json").body)["status"] == "done"
    (folder.path / place[1:] / "log.txt").write_text("secret")
    for other in (f"{place}/log.txt", place, f"{place}/", "/runs", "/runs/", f"/runs/{spec.run_id}"):
        assert get(server, other).status == 404


@pytest.mark.parametrize(
    "target",
    [
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/runs/../matrix.json",
        "/runs/..%2f..%2fsecret",
        "//etc/passwd",
        "/\x00",
        "/report/../matrix.json",
        "/report/report.html",
        "/matrix.json",
        "/.lock",
    ],
)
def test_no_path_leads_out_or_to_what_is_not_served(server: LiveServer, folder: Folder, target: str) -> None:
    (folder.path.parent / "secret").write_text("secret")
    reply = get(server, target)
    assert reply.status in (400, 404)
    assert "root:" not in reply.body
    assert "secret" not in reply.body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", ""])
def test_a_page_of_another_name_cannot_read(server: LiveServer, host: str) -> None:
    request = f"GET /state.json HTTP/1.1\r\nHost: {host.format(port=server.server_port)}\r\n\r\n"
    reply = exchange(server, request.encode())
    assert reply.status == 403
    assert "Host" in reply.body
    assert "digits" not in reply.body


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_the_names_of_loopback_can_read(server: LiveServer, host: str) -> None:
    assert get(server, host=host.format(port=server.server_port)).status == 200


def test_no_host_or_two_are_refused(server: LiveServer) -> None:
    assert exchange(server, b"GET / HTTP/1.0\r\n\r\n").status == 403
    right = f"Host: 127.0.0.1:{server.server_port}\r\n"
    assert exchange(server, f"GET / HTTP/1.1\r\n{right}Host: evil\r\n\r\n".encode()).status == 403
    assert exchange(server, f"GET / HTTP/1.1\r\n{right}\r\n".encode()).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"])
def test_only_reading_is_allowed(server: LiveServer, method: str) -> None:
    reply = get(server, method=method)
    assert reply.status == 405
    assert reply.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/x\r\n\r\n",
        b"GET /\r\n\r\n",
    ],
)
def test_what_is_no_request_is_an_error_without_traceback(server: LiveServer, request_bytes: bytes) -> None:
    reply = exchange(server, request_bytes)
    assert reply.status in (400, 403, 405, 505)
    assert reply.body.count("\n") == 1
    assert "Traceback" not in reply.body


def test_an_absolute_target_and_huge_or_many_headers_are_refused(server: LiveServer) -> None:
    assert get(server, "http://127.0.0.1/").status == 400
    assert get(server, "/", f"X: {'a' * 100_000}").status in (431, 0)  # 0: it closed before all was sent
    assert get(server, "/", f"X: {'a' * 1000}").status == 200
    assert get(server, "/", *["X: y"] * 300).status in (431, 0)


def test_the_end_does_not_wait_for_a_slow_client(site: Site) -> None:
    with serving(site, "127.0.0.1", 0) as server:
        slow = socket.create_connection(place_of(server))
        begun = time.monotonic()
    assert time.monotonic() - begun < 10
    slow.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place_of(server), timeout=5)


@pytest.mark.slow
def test_strangers_hold_few_threads_each_for_a_bounded_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.tell.live.server.REQUEST_SECONDS", 1.0)
    before = threading.active_count()
    with serving(site, "127.0.0.1", 0) as server, contextlib.ExitStack() as strangers:
        for _ in range(3 * MOST_REQUESTS):
            strangers.enter_context(socket.create_connection(place_of(server), timeout=10)).sendall(b"G")
        assert get(server, "/state.json").status == 200
        until(lambda: threading.active_count() <= before + 1 + MOST_REQUESTS)
        with socket.create_connection(place_of(server), timeout=0.05) as slow, contextlib.suppress(ConnectionError):
            begun = time.monotonic()
            while time.monotonic() - begun < 20:
                slow.sendall(b"x")
                with contextlib.suppress(TimeoutError):
                    if not slow.recv(100):
                        break
            assert time.monotonic() - begun < 15


def test_serving_writes_nothing_into_the_folder(server: LiveServer, folder: Folder) -> None:
    before = snapshot(folder.path)
    for target in ("/", "/live", "/state.json", "/report/", "/nothing"):
        get(server, target)
    assert snapshot(folder.path) == before


# --- where it can listen ---


def test_a_port_in_use_is_one_line(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ExperimentError, match="is in use; take another one"), serving(site, "127.0.0.1", port):
            pass


def test_a_forbidden_port_is_one_line(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(LiveServer, "server_bind", bind)
    with pytest.raises(ExperimentError, match=r"must be allowed to this user, but 80 on 127\.0\.0\.1 is not; take one from 1024"):
        serving(site, "127.0.0.1", 80).__enter__()


@pytest.mark.parametrize("address", ["no.such.host.invalid", "192.0.2.1", "\ud800"])
def test_an_address_of_nobody_is_one_line(site: Site, address: str) -> None:
    with pytest.raises(ExperimentError, match="`--address` must be an address of this host"), serving(site, address, 0):
        pass


def test_loopback_of_the_other_kind_needs_no_token(site: Site) -> None:
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(serving(site, "::1", 0))
        except ExperimentError:
            pytest.skip("this machine has no IPv6")
        assert server.access.token is None
        assert server.url == f"http://[::1]:{server.server_port}/"
        assert get(server, host=f"[::1]:{server.server_port}").status == 200
