"""From a kubeconfig to a connection: what is wrong with it is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.katib.fake_api import Answer, FakeApi
from tuneoff.errors import StepError
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.kubeconfig import client_configuration


def test_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"there is no kubeconfig at .*nowhere"):
        Connection(tmp_path / "nowhere")


def test_unknown_context_names_the_known_ones(api: FakeApi) -> None:
    with pytest.raises(StepError, match=r"context 'other'.*its contexts: fake"):
        Connection(api.kubeconfig, "other")


@pytest.mark.parametrize("content", ["", "[]", "a: [", "apiVersion: v1\nkind: Config\nclusters: 3\n", "\0\1"])
def test_broken_kubeconfig_is_one_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(StepError, match="cannot use kubeconfig") as caught:
        Connection(path)
    assert "\n" not in str(caught.value)


def test_credential_program_that_waits_for_a_person_is_given_up(api: FakeApi, tmp_path: Path) -> None:
    content = json.loads(api.kubeconfig.read_text())
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["2"], "interactiveMode": "Never"}
    content["users"][0]["user"] = {"exec": program}
    path = tmp_path / "exec"
    path.write_text(json.dumps(content))
    with pytest.raises(StepError, match=r"reading the kubeconfig takes longer than 0.2 s"):
        client_configuration(path, None, within_seconds=0.2)


def test_proxy_of_the_environment_is_not_used_for_loopback(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.on("GET", "/version", Answer(200, {}))
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert Connection(api.kubeconfig, limits=Limits(api=0.2)).read("/version") == {}
