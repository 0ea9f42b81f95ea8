"""`doctor`: one line per check, and an exit code that says what is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import fake_plugins
from command_line import Call, File
from tuneoff.base import packages
from tuneoff.base.code_digest import code_digest
from tuneoff.cli import doctor
from tuneoff.cli.doctor import DoctorCheck
from tuneoff.cli.kubeconfig import kubeconfig_problem

KUBECONFIG = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
    "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1"}}],
}


def _checks(call: Call, *arguments: str | Path) -> tuple[int, dict[str, DoctorCheck]]:
    answer = call("doctor", *arguments, "--json")
    found = [DoctorCheck(**check) for check in json.loads(answer.out)]
    assert len({check.name for check in found}) == len(found)
    return answer.code, {check.name: check for check in found}


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two fakes without a fault the only plugins."""
    monkeypatch.setattr(fake_plugins, "ADAPTERS", {"plain": "Plain", "missing": "Missing"})
    monkeypatch.setattr(fake_plugins, "WORKLOADS", {"curve": "Curve"})
    monkeypatch.delenv("TUNEOFF_DATA_DIR", raising=False)
    fake_plugins.register(monkeypatch)


def test_every_check_is_one_line(call: Call, healthy: None) -> None:
    answer = call("doctor")
    code, found = _checks(call)
    assert (answer.code, answer.err, code) == (0, "", 0)
    assert len(answer.out.splitlines()) == 1 + len(found)
    for name in ("python", "platform", "cores", "memory", "cgroup", "/dev/shm", "power", "conflict", "data folder", "results"):
        assert found[name].text
    assert found["adapter plain"].level == "ok"
    assert found["adapter missing"].level == "warn"
    assert found["adapter missing"].text.endswith("run: pip install 'tuneoff[nowhere]'")
    assert found["workload curve"].level == "ok"


def test_what_the_file_needs_must_be_there(call: Call, healthy: None, file: File) -> None:
    code, found = _checks(call, file(adapters=["plain", "missing"]))
    assert (code, found["adapter missing"].level) == (3, "fail")
    code, found = _checks(call, file(adapters=["plain"]))
    assert (code, found["data curve"].level) == (0, "ok")


def test_packages_that_do_not_work_together_are_named(call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"kubeflow-katib": "0.19.0", "kubernetes": "36.0.0"}
    monkeypatch.setattr(packages, "installed_version", versions.get)
    code, found = _checks(call)
    assert code == 3
    assert found["conflict kubernetes"].text.startswith("kubeflow-katib needs kubernetes < 36, but 36.0.0 is installed: ")
    assert found["conflict kubernetes"].text.endswith("run: pip install 'kubernetes<36'")
    versions |= {"kubernetes": "35.0.0", "protobuf": "4.25.9"}
    code, found = _checks(call)
    assert (code, found["conflict"].level) == (0, "ok")


def test_a_protobuf_that_katib_does_not_want_is_a_warning(call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"kubeflow-katib": "0.19.0", "kubernetes": "35.0.0", "protobuf": "5.28.0"}
    monkeypatch.setattr(packages, "installed_version", versions.get)
    code, found = _checks(call)
    assert (code, found["conflict protobuf"].level) == (0, "warn")
    assert found["conflict protobuf"].text.startswith("kubeflow-katib needs protobuf < 5, but 5.28.0 is installed: ")
    del versions["kubeflow-katib"]  # control: without Katib any protobuf is fine
    assert _checks(call)[1]["conflict"].level == "ok"


def test_a_kubeconfig_is_hinted_at_where_katib_is_installed(
    call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    versions = {"kubeflow-katib": "0.19.0", "kubernetes": "35.0.0"}
    monkeypatch.setattr(packages, "installed_version", versions.get)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    check = _checks(call)[1]["kubeconfig"]
    assert (check.level, check.text.startswith(f"none ({tmp_path}/.kube/config): ")) == ("ok", True)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    code, found = _checks(call)
    assert (code, found["kubeconfig"].level) == (0, "warn")
    assert found["kubeconfig"].text.endswith("correct or unset it")
    (tmp_path / "config").write_text(json.dumps(KUBECONFIG))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "nowhere"), str(tmp_path / "config")]))
    check = _checks(call)[1]["kubeconfig"]
    assert (check.level, check.text.split(";")[0]) == ("ok", str(tmp_path / "config"))
    del versions["kubeflow-katib"]
    assert "kubeconfig" not in _checks(call)[1]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "has no current-context"),
        ("{", "is no YAML"),
        ("- a", "must be a mapping"),
        (b"\xff\xfe\x00", "cannot be read: it is no text"),
        (json.dumps({**KUBECONFIG, "current-context": "there"}), "has no context 'there'"),
        (json.dumps({**KUBECONFIG, "clusters": []}), "context 'here' names no cluster with a server"),
        (json.dumps({**KUBECONFIG, "clusters": None}), "context 'here' names no cluster with a server"),
    ],
)
def test_a_kubeconfig_that_names_no_cluster_is_warned_of(
    call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | bytes, text: str
) -> None:
    monkeypatch.setattr(packages, "installed_version", {"kubeflow-katib": "0.19.0"}.get)
    path = tmp_path / "config"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setenv("KUBECONFIG", str(path))
    code, found = _checks(call)
    assert (code, found["kubeconfig"].level) == (0, "warn")
    assert text in found["kubeconfig"].text
    assert "; " in found["kubeconfig"].text
    assert "\n" not in found["kubeconfig"].text


def test_an_unreadable_kubeconfig_is_warned_of(tmp_path: Path) -> None:
    assert "cannot be read" in str(kubeconfig_problem([tmp_path]))  # a folder: root may read any file


def test_kubeconfigs_are_merged(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text(json.dumps({"current-context": "here"}))
    other.write_text(json.dumps({**KUBECONFIG, "current-context": "elsewhere"}))
    assert kubeconfig_problem([one, other]) is None
    assert kubeconfig_problem([other, one]) is not None


def _container_tool(folder: Path, script: str) -> None:
    """Write a `podman` that does what a script says."""
    folder.mkdir(exist_ok=True)
    (folder / "podman").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "podman").chmod(0o755)


def test_an_image_fits_where_its_tuneoff_is_this_one_to_the_letter(
    call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    _container_tool(tmp_path / "bin", f'echo "$@" > {tmp_path}/asked; echo {code_digest()}')
    code, found = _checks(call, "--image", "registry.example/tuneoff:1")
    assert (code, found["image"].level) == (0, "ok")
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:2] == ["run", "--rm"]
    assert {"--network=none", "--read-only", "--cap-drop=all", "registry.example/tuneoff:1"} < set(asked)
    _container_tool(tmp_path / "bin", f"echo {'0' * 64}")
    code, found = _checks(call, "--image", "registry.example/tuneoff:1")
    assert (code, found["image"].level) == (3, "fail")
    assert f"has tuneoff {'0' * 12}, and this is {code_digest()[:12]}; build it anew" in found["image"].text
    assert "image" not in _checks(call)[1]


def test_an_image_that_cannot_be_asked_fails_with_the_reason(
    call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    code, found = _checks(call, "--image", "i")
    assert (code, found["image"].level) == (1, "fail")
    assert "asked by podman or docker, but none of them is here" in found["image"].text
    _container_tool(
        tmp_path / "bin", "echo 'docker: no such image.' >&2; echo >&2; echo \"Run 'docker run --help'\" >&2; exit 125"
    )
    code, found = _checks(call, "--image", "i")
    assert (code, found["image"].level) == (1, "fail")
    assert "i does not say which tuneoff it has (docker: no such image.); " in found["image"].text


def test_a_broken_plugin_fails(call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_plugins.register(monkeypatch, fake_plugins.plugin("broken", "no_such_module:Adapter"))
    code, found = _checks(call)
    assert (code, found["adapter broken"].level) == (6, "fail")


def test_the_power_meter_is_named_with_its_kind_and_why_there_is_no_better_one(call: Call, healthy: None) -> None:
    code, found = _checks(call)
    assert (code, found["power"].level) == (0, "ok")
    assert any(kind in found["power"].text for kind in ("(measured: ", "(estimated: "))
    assert "no better one: no RAPL" in found["power"].text or found["power"].text.startswith("rapl")


def test_a_meter_that_the_file_names_must_be_there(
    call: Call, healthy: None, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = {
        "plug": "measure.power.third_party:Plug",
        "raising": "measure.power.third_party:Raising",
        "broken": "no_such_module:Meter",
    }
    fake_plugins.register(monkeypatch, meters=[fake_plugins.plugin(name, target) for name, target in targets.items()])
    code, found = _checks(call, file(adapters=["plain"], power="plug"))
    assert (code, found["power"].level, found["power"].text) == (0, "ok", "plug (measured: plug 7)")
    assert found["power meter 1"].level == "warn"
    assert "power meter 'broken' is broken (fakes 1.0)" in found["power meter 1"].text
    code, found = _checks(call, file(adapters=["plain"], power="raising"))
    assert (code, found["power"].level) == (2, "fail")
    assert "'raising' fails when it is opened: RuntimeError: first line second line" in found["power"].text


def test_a_data_folder_that_is_none_fails(call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEOFF_DATA_DIR", "/nowhere")
    code, found = _checks(call)
    assert (code, found["data folder"].level) == (4, "fail")
    assert "correct or unset it" in found["data folder"].text


def test_a_little_machine_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MIN_MEMORY_BYTES", 2**60)
    monkeypatch.setattr(doctor, "MIN_SHARED_MEMORY_BYTES", 2**60)
    monkeypatch.setattr(doctor, "MIN_DISK_BYTES", 2**60)
    found = {check.name: check for check in [*doctor.machine(), doctor.results_folder(Path("/"))]}
    for name in ("memory", "/dev/shm", "results"):
        assert found[name].level == "warn"
        assert "; " in found[name].text


def test_a_results_folder_that_cannot_be_written_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check = doctor.results_folder(tmp_path / "results")
    assert (check.level, check.exit_code) == ("fail", 5)


def test_what_the_runs_of_a_file_will_not_have_is_said(call: Call, file: File, healthy: None, tmp_path: Path) -> None:
    prices = {"name": "p", "source": "me", "date": "2026", "usd_per_vcpu_hour": 1, "usd_per_gb_hour": 1}
    (tmp_path / "prices.yaml").write_text(json.dumps(prices))
    (tmp_path / "recording.csv").write_text("seconds,domain,watts\n0,wall,40\n9,wall,40\n")
    meter = {"meter": "tuneoff_meters.replay:ReplayMeter", "options": {"path": "recording.csv"}}
    code, found = _checks(call, file(adapters=["plain"], prices="prices.yaml", power=meter))
    assert code == 0
    assert [found[f"foreseen null {number}"].level for number in (1, 2)] == ["warn", "warn"]
    assert "has no idle power of wall" in found["foreseen null 1"].text
    assert "prices: plain will have no cost: a slot's memory is not known" in found["foreseen null 2"].text
    assert not any(name.startswith("foreseen") for name in _checks(call, file(adapters=["plain"]))[1])
