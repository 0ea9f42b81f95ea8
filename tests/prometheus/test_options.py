"""Options of the meter: defaults, and one line for each that is wrong."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tuneoff.meter import MeterError
from tuneoff_meters.prometheus.meter import OwnQuery, PrometheusOptions, parse_options

OWN = {"wall": {"query": "plug_watts", "unit": "watts"}}


def test_without_options_the_local_server_is_asked_for_all_nodes_of_node_exporter() -> None:
    options = parse_options({})
    assert options == PrometheusOptions()
    assert (options.url, options.source, options.nodes) == ("http://127.0.0.1:9090", "node_exporter", ())


def test_own_promql_alone_is_the_source_query() -> None:
    options = parse_options({"domains": OWN, "nodes": "db1"})
    assert (options.source, options.nodes) == ("query", ("db1",))
    assert options.domains == {"wall": OwnQuery("plug_watts", "watts")}
    assert parse_options({"domains": OWN, "source": "dcgm"}).source == "dcgm"  # both


def test_a_token_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", " s3cret\n")
    options = parse_options({"token_variable": "MY_TOKEN"})
    assert options.authorization == "Bearer s3cret"
    assert "s3cret" not in repr(options)


def test_a_password_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PASSWORD", "pass word")
    options = parse_options({"username": "admin", "password_variable": "MY_PASSWORD"})
    assert base64.b64decode(options.authorization.removeprefix("Basic ")) == b"admin:pass word"
    assert options.authorization not in repr(options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"adress": "x"}, "no option 'adress'"),
        ({"token": "x"}, "no option 'token'"),
        ({"url": "localhost:9090"}, "`url` must be like http://127.0.0.1:9090, without a name, password or query"),
        ({"url": "ftp://a"}, "`url` must be like"),
        ({"url": "http://a:b"}, "`url` must be like"),
        ({"url": "http://a/?x=1"}, "`url` must be like"),
        ({"url": 9090}, "`url` must be like"),
        ({"url": "http://a/?token=pw"}, "without a name, password or query"),
        ({"url": "http://me:pw@a"}, "a password belongs into an environment variable"),
        ({"url": "http://me:pw@a:b"}, "a password belongs into an environment variable"),
        ({"username": "me"}, "give either `token_variable`, or both `username` and `password_variable`"),
        ({"password_variable": "X"}, "give either `token_variable`, or both"),
        ({"username": "a:b", "password_variable": "PATH"}, "must be a name without a colon, but got 'a:b'"),
        ({"username": "me", "password_variable": "TUNEOFF_NO_SUCH_VARIABLE"}, "export TUNEOFF_NO_SUCH_VARIABLE=..."),
        ({"username": "me", "password_variable": "PATH", "token_variable": "PATH"}, "give either `token_variable`, or"),
        ({"source": "node-exporter"}, "did you mean 'node_exporter'?"),
        ({"source": "query"}, "source `query` needs `domains"),
        ({"domains": {"a b": OWN["wall"]}}, "`domains`: Expected `str` matching regex"),
        ({"domains": {"wall": "plug_watts"}}, "`domains[...]`: Expected `object`, got `str`"),
        ({"domains": {"wall": {"query": "x", "unit": "horses"}}}, "no unit named 'horses'"),
        ({"domains": {"wall": {"query": " ", "unit": "watts"}}}, "`domains[...].query`: Expected `str` matching"),
        ({"domains": {"wall": {**OWN["wall"], "scale": 2}}}, "contains unknown field `scale`"),
        ({"domains": ["x"]}, "`domains`: Expected `object`, got `array`"),
        ({"nodes": [1]}, "`nodes[0]`: Expected `str`, got `int`, but got [1]"),
        ({"kind": "measured"}, "may only be estimated for source 'node_exporter'"),
        ({"kind": "guessed", "domains": OWN}, "`kind`: Invalid enum value 'guessed'"),
        ({"step_seconds": 1}, "no option 'step_seconds'"),
        ({"source": "kepler"}, "no source named 'kepler'"),
        ({"timeout_seconds": 0}, "`timeout_seconds`: Expected `float` >= 0.1, but got 0"),
        ({"idle_watts": 20}, "`idle_watts`: Expected `object`, got `int`, but got 20"),
        ({"idle_watts": {"a/package-0": -1}}, "`idle_watts[...]`: Expected `float` >= 0.0, but got {'a/package-0': -1}"),
        ({"timeout_seconds": True}, "`timeout_seconds`: Expected `float`, got `bool`"),
        ({"wait_seconds": float("nan")}, "`wait_seconds`: Expected `float` >= 0.0, but got nan"),
        ({"token_variable": "TUNEOFF_NO_SUCH_VARIABLE"}, "which is not set; export TUNEOFF_NO_SUCH_VARIABLE=..."),
    ],
)
def test_a_wrong_option_is_one_line_with_its_value(options: dict[str, Any], said: str) -> None:
    with pytest.raises(MeterError) as caught:
        parse_options(options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pw" not in str(caught.value)
