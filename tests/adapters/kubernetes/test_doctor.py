"""`tuneoff doctor` of adapters whose trials run in pods: the kubeconfig, the image of the trials."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tuneoff.adapter import Finding
from tuneoff.base.code_digest import code_digest
from tuneoff_adapters.kubernetes import doctor
from tuneoff_adapters.kubernetes.doctor import checks

KUBECONFIG = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
    "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1"}}],
}


def _found(image: str | None = None) -> dict[str, Finding]:
    return {check.id: check for check in checks(image)}


def test_a_kubeconfig_is_hinted_at_where_the_client_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    versions = {"kubernetes": "35.0.0"}
    monkeypatch.setattr(doctor, "installed_version", versions.get)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    check = _found()["kubeconfig"]
    assert (check.verdict, check.text.startswith(f"none ({tmp_path}/.kube/config): ")) == ("passed", True)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    found = _found()
    assert found["kubeconfig"].verdict == "warning"
    assert found["kubeconfig"].text.startswith(f"there is no kubeconfig at {tmp_path}/nowhere; set ")
    (tmp_path / "config").write_text(json.dumps(KUBECONFIG))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "nowhere"), str(tmp_path / "config")]))
    check = _found()["kubeconfig"]
    assert (check.verdict, check.text.endswith("/config; platform kubernetes takes it")) == ("passed", True)
    del versions["kubernetes"]
    assert "kubeconfig" not in _found()


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "- a", b"\xff\xfe\x00"),
        json.dumps({**KUBECONFIG, "current-context": "x"}),
        json.dumps({**KUBECONFIG, "clusters": []}),
    ],
)
def test_a_kubeconfig_that_names_no_cluster_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | bytes
) -> None:
    monkeypatch.setattr(doctor, "installed_version", {"kubernetes": "35.0.0"}.get)
    path = tmp_path / "config"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setenv("KUBECONFIG", str(path))
    found = _found()["kubeconfig"]
    assert (found.verdict, f"cannot use kubeconfig {path}: " in found.text, "\n" in found.text) == ("warning", True, False)
    assert "; it" in found.text  # the way out


def _container_tool(folder: Path, script: str) -> None:
    """Write a `podman` that does what a script says."""
    folder.mkdir(exist_ok=True)
    (folder / "podman").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "podman").chmod(0o755)


def test_an_image_fits_where_its_tuneoff_is_this_one_to_the_letter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    _container_tool(tmp_path / "bin", f'echo "$@" > {tmp_path}/asked; echo {code_digest()}')
    found = _found("registry.example/tuneoff:1")
    assert found["image"].verdict == "passed"
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:2] == ["run", "--rm"]
    assert {"--network=none", "--read-only", "--cap-drop=all", "registry.example/tuneoff:1"} < set(asked)
    _container_tool(tmp_path / "bin", f"echo {'0' * 64}")
    found = _found("registry.example/tuneoff:1")
    assert (found["image"].verdict, found["image"].exit_code) == ("failed", 3)
    assert f"has tuneoff {'0' * 12}, and this is {code_digest()[:12]}; build it anew" in found["image"].text
    assert "image" not in _found()


def test_an_image_that_cannot_be_asked_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = _found("i")
    assert (found["image"].verdict, found["image"].exit_code) == ("failed", 1)
    assert "asked by podman or docker, but none of them is here" in found["image"].text
    _container_tool(
        tmp_path / "bin", "echo 'docker: no such image.' >&2; echo >&2; echo \"Run 'docker run --help'\" >&2; exit 125"
    )
    found = _found("i")
    assert (found["image"].verdict, found["image"].exit_code) == ("failed", 1)
    assert "i does not say which tuneoff it has (docker: no such image.); " in found["image"].text
