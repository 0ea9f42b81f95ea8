"""Options of the meter: defaults, and one line for each that is wrong."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tuneoff.meter import MeterError
from tuneoff_meters.prometheus.meter import PrometheusMeter, PrometheusOptions, authorization

OWN = {"wall": {"query": "plug_watts", "unit": "watts"}}


def test_a_secret_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", " s3cret\n")
    monkeypatch.setenv("MY_PASSWORD", "pass word")
    assert authorization(PrometheusOptions()) == ""
    token = PrometheusOptions(token_variable="MY_TOKEN")
    assert authorization(token) == "Bearer s3cret"
    password = PrometheusOptions(username="admin", password_variable="MY_PASSWORD")
    assert base64.b64decode(authorization(password).removeprefix("Basic ")) == b"admin:pass word"
    assert "s3cret" not in repr(token)
    assert "pass word" not in repr(password)
    with pytest.raises(MeterError, match=r"which is not set; export TUNEOFF_NO_SUCH_VARIABLE=\.\.\."):
        authorization(PrometheusOptions(token_variable="TUNEOFF_NO_SUCH_VARIABLE"))
    with pytest.raises(MeterError, match="must be one ASCII word; export it again"):
        authorization(PrometheusOptions(token_variable="MY_PASSWORD"))


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({}, "node_exporter"),
        ({"domains": OWN, "nodes": "db1"}, "query"),
        ({"domains": OWN, "source": "dcgm", "nodes": ["a", "b:9100"]}, "dcgm"),  # both
    ],
)
def test_own_promql_alone_is_the_source_query(options: dict[str, Any], source: str) -> None:
    assert PrometheusMeter.check_options(options).source_name == source


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"adress": "x"}, "no option 'adress'"),
        ({"token": "x"}, "no option 'token'"),
        ({"url": "localhost:9090"}, "`url` must be like http://127.0.0.1:9090, without a name, password or query"),
        ({"url": "ftp://a"}, "`url` must be like"),
        ({"url": "http://a:b"}, "`url` must be like"),
        ({"url": "http://a/?token=pw"}, "without a name, password or query"),
        ({"url": "http://me:pw@a"}, "a password belongs into an environment variable"),
        ({"url": "http://me:pw@a:b"}, "a password belongs into an environment variable"),
        ({"username": "me"}, "give either `token_variable`, or both `username` and `password_variable`"),
        ({"password_variable": "X"}, "give either `token_variable`, or both"),
        ({"username": "a:b", "password_variable": "PATH"}, "`username`: Expected `str` matching regex"),
        ({"username": "me", "password_variable": "PATH", "token_variable": "PATH"}, "give either `token_variable`, or"),
        ({"source": "node-exporter"}, "did you mean 'node_exporter'?"),
        ({"source": "query"}, "source `query` needs `domains"),
        ({"domains": {"a b": OWN["wall"]}}, "`domains`: Expected `str` matching regex"),
        ({"domains": {"wall": {"query": "x", "unit": "horses"}}}, "no unit named 'horses'"),
        ({"domains": {"wall": {"query": " ", "unit": "watts"}}}, "`domains[...].query`: Expected `str` matching"),
        ({"domains": {"wall": {**OWN["wall"], "scale": 2}}}, "contains unknown field `scale`"),
        ({"kind": "measured"}, "may only be estimated for source 'node_exporter'"),
        ({"timeout_seconds": 0}, "`timeout_seconds`: Expected `float` >= 0.1, but got 0"),
        ({"idle_watts": {"a/package-0": -1}}, "`idle_watts[...]`: Expected `float` >= 0.0, but got {'a/package-0': -1}"),
    ],
)
def test_a_wrong_option_is_one_line_with_its_value(options: dict[str, Any], said: str) -> None:
    with pytest.raises(MeterError) as caught:
        PrometheusMeter.check_options(options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pw" not in str(caught.value)
