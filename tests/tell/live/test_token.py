"""`tuneoff watch --serve` that is bound elsewhere than on loopback: nothing without the token."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tell.live.client import get, made_folder, made_site
from tuneoff.tell.live.server import LiveServer, serving
from tuneoff.tell.live.site import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return made_site(made_folder(tmp_path_factory.mktemp("guarded")))


@pytest.fixture(scope="module")
def guarded(site: Site) -> Iterator[LiveServer]:
    with serving(site, "0.0.0.0", 0) as made:
        yield made


def token_of(server: LiveServer) -> str:
    assert server.access.token is not None
    return server.access.token


def test_without_the_token_nothing_is_shown(guarded: LiveServer) -> None:
    token = token_of(guarded)
    assert len(token) >= 32
    assert guarded.url.endswith(f":{guarded.server_port}/?token={token}")
    wrong = [
        get(guarded),
        get(guarded, "/state.json?token="),
        get(guarded, f"/?token={token[:-1]}"),
        get(guarded, f"/?token={token}x"),
        get(guarded, f"/?Token={token}"),
        get(guarded, "/?token=%ff%fe"),
        get(guarded, "/?" + "&".join(f"a{number}=1" for number in range(50)) + f"&token={token}"),
        get(guarded, "/live", f"Cookie: tuneoff_1={token}"),
        get(guarded, "/nothing", f"Cookie: {guarded.access.cookie}=x; {guarded.access.cookie}="),
    ]
    for reply in wrong:
        assert reply.status == 403
        assert "digits" not in reply.body
        assert "set-cookie" not in reply.headers


def test_the_token_opens_the_page_and_the_cookie_keeps_it_open(guarded: LiveServer) -> None:
    first = get(guarded, f"/?token={token_of(guarded)}", host="any.name")
    assert first.status == 200
    cookie, *attributes = first.headers["set-cookie"].split("; ")
    assert set(attributes) == {"HttpOnly", "SameSite=Strict", "Path=/"}
    second = get(guarded, "/state.json", f"Cookie: other=1; {cookie}", host="any.name")
    assert (second.status, json.loads(second.body)["ended"]) == (200, 1)
    assert "set-cookie" not in second.headers


def test_each_server_has_a_token_of_its_own(site: Site, guarded: LiveServer) -> None:
    with serving(site, "0.0.0.0", 0) as other:
        assert token_of(other) != token_of(guarded)


def test_the_token_is_compared_in_constant_time(guarded: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr("tuneoff.tell.live.server.hmac.compare_digest", compare)
    get(guarded, "/?token=x", f"Cookie: {guarded.access.cookie}=y")
    assert [one for one, _ in compared] == [b"x", b"y"]
