"""`doctor`: one line per check, and an exit code that says what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import fake_plugins
from command_line import Call, File
from tuneoff.base.findings import Finding
from tuneoff.cli import doctor

Checks = dict[str, tuple[str, str]]  # level and text, by name


def checked(call: Call, *arguments: str | Path) -> tuple[int, Checks]:
    answer = call("doctor", *arguments, "--json")
    found = json.loads(answer.out)
    by_name = {check["name"]: (check["level"], check["text"]) for check in found}
    assert len(by_name) == len(found)
    return answer.code, by_name


@pytest.fixture
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two fakes without a fault the only plugins."""
    monkeypatch.setattr(fake_plugins, "ADAPTERS", {"plain": "Plain", "missing": "Missing"})
    monkeypatch.setattr(fake_plugins, "WORKLOADS", {"curve": "Curve"})
    monkeypatch.delenv("TUNEOFF_DATA_DIR", raising=False)
    fake_plugins.register(monkeypatch)


def test_every_check_is_one_line_and_what_the_file_needs_must_be_there(call: Call, healthy: None, file: File) -> None:
    answer = call("doctor")
    code, found = checked(call)
    assert (answer.code, answer.err, code) == (0, "", 0)
    assert len(answer.out.splitlines()) == 1 + len(found)
    for name in ("python", "platform", "cores", "memory", "cgroup", "/dev/shm", "power", "data folder", "results"):
        assert found[name][1]
    assert [found[name][0] for name in ("adapter plain", "adapter missing", "workload curve")] == ["ok", "warn", "ok"]
    assert found["adapter missing"][1].endswith("run: pip install nowhere-tune")
    meter = found["power"][1]  # with its kind, and why there is no better one
    assert "(measured: " in meter or "(estimated: " in meter
    assert "no better one: no RAPL" in meter or meter.startswith("rapl")
    code, found = checked(call, file(adapters=["plain", "missing"]))
    assert (code, found["adapter missing"][0]) == (3, "fail")
    code, found = checked(call, file(adapters=["plain"]))
    assert (code, found["data curve"][0]) == (0, "ok")


def checks_of_its_own(image: str | None) -> Iterator[Finding]:
    yield Finding(id="own", verdict="warning" if image is None else "failed", text=f"asked with {image}", exit_code=1)
    yield Finding(id="cluster", verdict="not tested", text="nothing answers")


def faulty_checks(image: str | None) -> Iterator[Finding]:
    raise KeyError("oops")


def test_an_adapter_has_checks_of_its_own_and_a_broken_plugin_fails(
    call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_plugins.Plain, "doctor", f"{__name__}:checks_of_its_own")
    monkeypatch.setattr(fake_plugins.Missing, "doctor", f"{__name__}:checks_of_its_own")  # the same: once
    code, found = checked(call)
    assert (code, found["own"], found["cluster"][0]) == (0, ("warn", "asked with None"), "warn")
    code, found = checked(call, "--image", "i")
    assert (code, found["own"][1]) == (1, "asked with i")
    monkeypatch.setattr(fake_plugins.Plain, "doctor", f"{__name__}:faulty_checks")
    code, found = checked(call)
    level, text = found[f"{__name__}:faulty_checks"]
    assert (code, level, text.startswith("KeyError: 'oops'")) == (6, "fail", True)
    monkeypatch.setattr(fake_plugins.Plain, "doctor", None)
    fake_plugins.register(monkeypatch, fake_plugins.plugin("broken", "no_such_module:Adapter"))
    code, found = checked(call)
    assert (code, found["adapter broken"][0]) == (6, "fail")


def test_a_meter_that_the_file_names_must_be_there(
    call: Call, healthy: None, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = {
        "plug": "measure.power.third_party:Plug",
        "raising": "measure.power.third_party:Raising",
        "broken": "no_such_module:Meter",
    }
    fake_plugins.register(monkeypatch, meters=[fake_plugins.plugin(name, target) for name, target in targets.items()])
    code, found = checked(call, file(adapters=["plain"], power="plug"))
    assert (code, found["power"], found["power meter 1"][0]) == (0, ("ok", "plug (measured: plug 7)"), "warn")
    assert "power meter 'broken' is broken (fakes 1.0)" in found["power meter 1"][1]
    code, found = checked(call, file(adapters=["plain"], power="raising"))
    assert (code, found["power"][0]) == (2, "fail")
    assert "'raising' fails when it is opened: RuntimeError: first line second line" in found["power"][1]


def test_data_of_what_nothing_asks_for_and_a_folder_that_is_none(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found = checked(call)  # of all that is installed: `command` needs an option
    assert found["workload command"] == ("ok", "command 1")
    monkeypatch.setenv("TUNEOFF_DATA_DIR", "/nowhere")
    code, found = checked(call)
    assert (code, found["data folder"][0], "correct or unset it" in found["data folder"][1]) == (4, "fail", True)


def test_a_little_machine_is_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("MIN_MEMORY_BYTES", "MIN_SHARED_MEMORY_BYTES", "MIN_DISK_BYTES"):
        monkeypatch.setattr(doctor, name, 2**60)
    found = {check.id: check for check in [*doctor.machine(), doctor.results_folder(Path("/"))]}
    assert [(found[name].verdict, "; " in found[name].text) for name in ("memory", "/dev/shm", "results")] == [
        ("warning", True)
    ] * 3
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check = doctor.results_folder(tmp_path / "results")
    assert (check.verdict, check.exit_code) == ("failed", 5)
