"""The client of the HTTP API against a server that answers, refuses, lies, redirects, stalls, or is not there."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from prometheus.fake_server import Answer, FakePrometheus, failure, success
from tuneoff.meter import MeterError
from tuneoff_meters.prometheus.meter import PrometheusApi


def refusal(api: PrometheusApi) -> str:
    with pytest.raises(MeterError) as caught:
        api.series("up")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_series_of_an_instant_query_are_returned(server: FakePrometheus) -> None:
    server.add("up", [(time.time(), 1.0)], instance="a:9100")
    (series,) = PrometheusApi(server.url).series("up")
    assert series.metric == {"__name__": "up", "instance": "a:9100"}


def test_the_servers_clock_is_compared_with_this_hosts(server: FakePrometheus) -> None:
    server.clock_ahead = 3.0
    offset, error = PrometheusApi(server.url).clock_offset()
    assert offset == pytest.approx(3.0, abs=error + 0.01)


def test_a_token_is_sent_and_a_missing_one_is_named(server: FakePrometheus) -> None:
    server.authorization = "Bearer abc"
    assert PrometheusApi(server.url, authorization="Bearer abc").series("up") == []
    assert "token_variable" in refusal(PrometheusApi(server.url))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (failure(400, "bad_data", 'unexpected\nidentifier "up"'), '(HTTP 400): unexpected identifier "up"'),
        (failure(200, "execution", "query timed out"), "query timed out"),
        ((200, b"<html>Grafana</html>"), "must answer as Prometheus does, but JSON is malformed"),
        ((200, b"\xff\xfe"), "must answer as Prometheus does, but"),
        ((200, b'{"status": "success"}'), "must answer as Prometheus does, but 'result'"),
        ((200, b'{"status": "success", "data": {"result": [1]}}'), "must answer as Prometheus does, but Expected `object`"),
        (
            success({"result": [{"metric": {}, "values": [[1, "x"]]}]}),
            "must answer as Prometheus does, but Expected `str` matching",
        ),
        ((404, b"404 page not found\n"), "(HTTP 404): 404 page not found; check that `url` is the server's root"),
        ((502, b"<html>Bad gateway</html>"), "(HTTP 502): no reason is given; check that `url`"),
        ((200, b"[" * 100_000), "must answer as Prometheus does, but Expected `object`"),
        ((302, b"http://192.0.2.1/login"), "it redirects to http://192.0.2.1/login; give that address as `url`"),  # not followed
    ],
)
def test_a_refusal_and_what_is_no_prometheus_are_told(server: FakePrometheus, answer: Answer, said: str) -> None:
    server.override = lambda endpoint, parameters: answer
    assert said in refusal(PrometheusApi(server.url, authorization="Bearer abc"))


def test_a_server_that_is_not_there_is_named_with_the_way_out() -> None:
    with socket.socket() as bound:  # bound, but not listening
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        assert refusal(PrometheusApi(url)) == (
            f"Prometheus must be reachable at {url}, but: Connection refused; start it, correct `url`, or take another meter"
        )


def test_a_server_that_speaks_no_tls_is_told(server: FakePrometheus) -> None:
    assert "it speaks no https: give `url` with http" in refusal(PrometheusApi(server.url.replace("http", "https")))


def test_a_server_that_hangs_is_given_up(server: FakePrometheus) -> None:
    release = threading.Event()

    def hang(endpoint: str, parameters: object) -> Answer:
        release.wait(20)
        return 200, b""

    server.override = hang
    try:
        assert "did not answer within 0.2 s" in refusal(PrometheusApi(server.url, timeout_seconds=0.2))
    finally:
        release.set()


def test_a_server_that_answers_byte_by_byte_is_given_up_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def trickle() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not stop.wait(0.02):
                    try:
                        connection.sendall(b" ")
                    except OSError:  # the client has given up
                        return

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            started = time.monotonic()
            api = PrometheusApi(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout_seconds=0.3)
            assert "did not answer within 0.3 s" in refusal(api)
            assert time.monotonic() - started < 5
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize("code", [200, 401, 500])
def test_a_secret_that_a_server_repeats_is_not_told(server: FakePrometheus, code: int) -> None:
    server.override = lambda endpoint, parameters: failure(code, "internal", "no good: Bearer s3cret")
    assert "no good: Bearer ***; " in refusal(PrometheusApi(server.url, authorization="Bearer s3cret"))
    assert "no good: Bearer s3cret; " in refusal(PrometheusApi(server.url))  # negative control: the server does repeat it


def test_warnings_of_an_answer_are_kept_each_once(server: FakePrometheus) -> None:
    server.warnings = ("store node-7:\nconnection refused", "another")
    api = PrometheusApi(server.url)
    api.series("up")
    api.series("up")
    assert list(api.warnings) == ["store node-7: connection refused", "another"]


def test_no_proxy_is_asked_for_this_machines_own_addresses(server: FakePrometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert PrometheusApi(server.url).series("up") == []
    assert "Connection refused" in refusal(PrometheusApi("http://prometheus.invalid"))  # the proxy's: it is asked elsewhere
