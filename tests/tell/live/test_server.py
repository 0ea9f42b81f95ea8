"""`tuneoff watch --serve` over raw sockets: who may read what, what a slow or greedy client gets, and that nothing is written."""

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

PAGES = ("/", "/live", "/state.json", "/nothing")


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


@pytest.fixture(scope="module")
def guarded(site: Site) -> Iterator[LiveServer]:
    with serving(site, "0.0.0.0", 0) as made:
        yield made


def test_the_pages_are_served_with_headers_that_protect_them_and_nothing_is_written(server: LiveServer, folder: Folder) -> None:
    before = snapshot(folder.path)
    replies = {target: get(server, target) for target in PAGES}
    assert replies["/"].body.endswith("<h1>report of results</h1>")
    for target in ("/", "/live"):
        assert "1 of 6 runs ended" in replies[target].body
    assert json.loads(replies["/state.json"].body)["ended"] == 1
    assert server.url == f"http://127.0.0.1:{server.server_port}/"
    for target, reply in replies.items():
        names = ("cache-control", "x-content-type-options", "referrer-policy")
        assert [reply.headers[name] for name in names] == ["no-store", "nosniff", "no-referrer"]
        policy = reply.headers["content-security-policy"]
        assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy.split("; "))
        assert ("unsafe" in policy) is (target == "/")  # that has a policy of its own, too
        assert "access-control-allow-origin" not in reply.headers
        assert "python" not in reply.headers["server"].lower()
        assert int(reply.headers["content-length"]) == len(reply.body.encode())
    assert snapshot(folder.path) == before


def test_the_record_that_the_report_links_to_is_served_and_nothing_beside_it(server: LiveServer, folder: Folder) -> None:
    spec = folder.specs["serial", 0]
    place = f"/runs/{spec.run_id}/{spec.run_id}-1"
    assert json.loads(get(server, f"{place}/run.json").body)["status"] == "done"
    (folder.path / place[1:] / "log.txt").write_text("secret")
    (folder.path.parent / "secret").write_text("secret")
    outside = ("/../../../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/runs/..%2f..%2fsecret", "//etc/passwd", "/\x00")
    beside = ("/runs/../matrix.json", "/report/../matrix.json", "/report/report.html", "/matrix.json", "/.lock")
    for target in (*outside, *beside, f"{place}/log.txt", place, f"{place}/", "/runs", "/runs/", f"/runs/{spec.run_id}"):
        reply = get(server, target)
        assert reply.status in (400, 404), target
        assert not any(text in reply.body for text in ("root:", "secret"))


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        *(([host], 403) for host in ("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}")),
        *(([host], 200) for host in ("127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}")),
        ([], 403),
        ([""], 403),
        (["127.0.0.1:{port}", "evil"], 403),
    ],
)
def test_a_page_of_another_name_cannot_read(server: LiveServer, hosts: list[str], status: int) -> None:
    lines = "".join(f"Host: {host.format(port=server.server_port)}\r\n" for host in hosts)
    reply = exchange(server, f"GET /state.json HTTP/1.1\r\n{lines}\r\n".encode())
    assert (reply.status, "digits" in reply.body, "Host" in reply.body) == (status, status == 200, status == 403)


@pytest.mark.parametrize("method", ["POST", "HEAD", "TRACE", "CONNECT", "get"])
def test_only_reading_is_allowed(server: LiveServer, method: str) -> None:
    reply = get(server, method=method)
    assert (reply.status, reply.headers["allow"]) == (405, "GET")


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
    assert (reply.body.count("\n"), "Traceback" in reply.body) == (1, False)


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


# --- elsewhere than on loopback: nothing without the token ---


def test_without_the_token_nothing_is_shown_and_with_it_a_cookie_keeps_the_page_open(site: Site, guarded: LiveServer) -> None:
    token, cookie = guarded.access.token or "", guarded.access.cookie
    assert len(token) >= 32
    assert guarded.url.endswith(f":{guarded.server_port}/?token={token}")
    with serving(site, "0.0.0.0", 0) as other:
        assert other.access.token != token
    many = "&".join(f"a{number}=1" for number in range(50))
    wrong = ("/", "/state.json?token=", f"/?token={token[:-1]}", f"/?token={token}x", f"/?Token={token}", "/?token=%ff%fe")
    replies = [get(guarded, target) for target in (*wrong, f"/?{many}&token={token}")]
    replies += [get(guarded, "/live", f"Cookie: {value}") for value in (f"tuneoff_1={token}", f"{cookie}=x; {cookie}=")]
    for reply in replies:
        assert (reply.status, "digits" in reply.body, "set-cookie" in reply.headers) == (403, False, False)
    first = get(guarded, f"/?token={token}", host="any.name")
    kept, *attributes = first.headers["set-cookie"].split("; ")
    assert (first.status, set(attributes)) == (200, {"HttpOnly", "SameSite=Strict", "Path=/"})
    second = get(guarded, "/state.json", f"Cookie: other=1; {kept}", host="any.name")
    assert (second.status, json.loads(second.body)["ended"], "set-cookie" in second.headers) == (200, 1, False)


def test_the_token_is_compared_in_constant_time(guarded: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    monkeypatch.setattr("tuneoff.tell.live.server.hmac.compare_digest", lambda one, other: compared.append(one))
    get(guarded, "/?token=x", f"Cookie: {guarded.access.cookie}=y")
    assert compared == [b"x", b"y"]


# --- where it can listen ---


def test_a_port_that_cannot_be_used_is_one_line(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ExperimentError, match="is in use; take another one"):
        serving(site, "127.0.0.1", taken.getsockname()[1]).__enter__()
    monkeypatch.setattr(LiveServer, "server_bind", bind)
    with pytest.raises(ExperimentError, match=r"must be allowed to this user, but 80 on 127\.0\.0\.1 is not; take one from 1024"):
        serving(site, "127.0.0.1", 80).__enter__()


@pytest.mark.parametrize("address", ["no.such.host.invalid", "192.0.2.1", "\ud800"])
def test_an_address_of_nobody_is_one_line(site: Site, address: str) -> None:
    with pytest.raises(ExperimentError, match="`--address` must be an address of this host"):
        serving(site, address, 0).__enter__()


def test_loopback_of_the_other_kind_needs_no_token(site: Site) -> None:
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(serving(site, "::1", 0))
        except ExperimentError:
            pytest.skip("this machine has no IPv6")
        assert (server.access.token, server.url) == (None, f"http://[::1]:{server.server_port}/")
        assert get(server, host=f"[::1]:{server.server_port}").status == 200
