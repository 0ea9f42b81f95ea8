"""`tuneoff doctor` asks the kubeconfig's cluster: is it there, does Katib run, may its user run trials; a line each, in time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml

from adapters.katib.fake_api import Answer, FakeApi, write_kubeconfig
from adapters.katib.test_checks import GROUP, REVIEWS, api, review
from tuneoff.adapter import Finding
from tuneoff_adapters.katib import checks, doctor
from tuneoff_adapters.katib.adapter import KatibAdapter

__all__ = ["api"]  # a fixture
ALL_OK = {"cluster": "passed", "katib": "passed", "cluster rights": "passed"}


def answers(monkeypatch: pytest.MonkeyPatch, kubeconfig: Path) -> dict[str, Finding]:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    return {check.id: check for check in doctor.checks(None)}


def test_a_cluster_that_can_take_runs_says_so_in_three_lines(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KatibAdapter.doctor == f"{doctor.__name__}:{doctor.checks.__name__}"
    found = answers(monkeypatch, api.kubeconfig)
    assert {name: found[name].verdict for name in ALL_OK} == ALL_OK
    assert found["cluster"].text.startswith("Kubernetes v1.36.2 answers at http")
    assert found["katib"].text == "runs there (katib-controller:v0.19.0)"
    assert {asked.method for asked in api.asked if asked.path != REVIEWS} == {"GET"}  # nothing is made


def test_what_is_amiss_is_a_line_of_its_own(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.on("GET", GROUP, Answer(404, {}))
    api.on("POST", REVIEWS, review("create experiments", "get pods/attach"))
    found = answers(monkeypatch, api.kubeconfig)
    assert {one: found[one].verdict for one in ALL_OK} == {"cluster": "passed", "katib": "warning", "cluster rights": "warning"}
    assert "Katib is not installed: the API server has no group" in found["katib"].text
    words = "lacks rights for namespace 'tuneoff-doctor': create experiments.kubeflow.org, get pods/attach; bind a role"
    assert words in found["cluster rights"].text


def test_a_cluster_that_does_not_answer_is_one_line_and_costs_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    found = answers(monkeypatch, write_kubeconfig(tmp_path / "config", "http://127.0.0.1:9"))
    assert time.monotonic() - started < 3 * doctor.SECONDS
    assert set(found) == {"cluster"}
    assert (found["cluster"].verdict, "127.0.0.1:9 cannot be reached" in found["cluster"].text) == ("warning", True)
    assert answers(monkeypatch, tmp_path / "nowhere") == {}


def test_a_client_that_breaks_the_sdk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "installed_version", {"kubernetes": "36.0.0"}.get)
    found = answers(monkeypatch, tmp_path / "nowhere")["conflict kubernetes"]
    assert (found.verdict, found.exit_code) == ("failed", 3)
    assert found.text.endswith("36.0.0 is installed; run: pip install 'kubernetes>=27.2,<36'")


def test_a_program_for_the_credentials_is_started_once(api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    credential = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "t"}}
    (tmp_path / "credential").write_text(json.dumps(credential))
    command = ["-c", f"echo started >> {tmp_path}/starts; cat {tmp_path}/credential"]
    program = {"apiVersion": credential["apiVersion"], "command": "sh", "args": command, "interactiveMode": "Never"}
    content = yaml.safe_load(api.kubeconfig.read_text())
    content["users"] = [{**user, "user": {"exec": program}} for user in content["users"]]
    (tmp_path / "config").write_text(json.dumps(content))
    assert answers(monkeypatch, tmp_path / "config")["cluster"].verdict == "passed"
    assert (tmp_path / "starts").read_text() == "started\n"
