"""`doctor`: one line per check, and an exit code that says what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fake_plugins
from command_line import Call, File
from tuneoff.base.findings import Finding
from tuneoff.cli import doctor


def _checks(call: Call, *arguments: str | Path) -> tuple[int, dict[str, Any]]:
    answer = call("doctor", *arguments, "--json")
    found = [SimpleNamespace(**check) for check in json.loads(answer.out)]
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
    for name in ("python", "platform", "cores", "memory", "cgroup", "/dev/shm", "power", "data folder", "results"):
        assert found[name].text
    assert found["adapter plain"].level == "ok"
    assert found["adapter missing"].level == "warn"
    assert found["adapter missing"].text.endswith("run: pip install nowhere-tune")
    assert found["workload curve"].level == "ok"


def test_what_the_file_needs_must_be_there(call: Call, healthy: None, file: File) -> None:
    code, found = _checks(call, file(adapters=["plain", "missing"]))
    assert (code, found["adapter missing"].level) == (3, "fail")
    code, found = _checks(call, file(adapters=["plain"]))
    assert (code, found["data curve"].level) == (0, "ok")


def checks_of_its_own(image: str | None) -> Iterator[Finding]:
    yield Finding(id="own", verdict="warning" if image is None else "failed", text=f"asked with {image}", exit_code=1)
    yield Finding(id="cluster", verdict="not tested", text="nothing answers")


def faulty_checks(image: str | None) -> Iterator[Finding]:
    raise KeyError("oops")


def test_an_adapter_has_checks_of_its_own(call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_plugins.Plain, "doctor", f"{__name__}:checks_of_its_own")
    monkeypatch.setattr(fake_plugins.Missing, "doctor", f"{__name__}:checks_of_its_own")  # the same: once
    code, found = _checks(call)
    assert (code, found["own"].level, found["own"].text) == (0, "warn", "asked with None")
    assert found["cluster"].level == "warn"
    code, found = _checks(call, "--image", "i")
    assert (code, found["own"].text) == (1, "asked with i")
    monkeypatch.setattr(fake_plugins.Plain, "doctor", f"{__name__}:faulty_checks")
    code, found = _checks(call)
    assert (code, found[f"{__name__}:faulty_checks"].level) == (6, "fail")
    assert found[f"{__name__}:faulty_checks"].text.startswith("KeyError: 'oops'")


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


def test_a_workload_that_nothing_asks_for_is_tried_with_its_own_options(call: Call) -> None:
    _, found = _checks(call)  # of all that is installed: `command` needs an option
    assert (found["workload command"].level, found["workload command"].text) == ("ok", "command 1")


def test_a_data_folder_that_is_none_fails(call: Call, healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEOFF_DATA_DIR", "/nowhere")
    code, found = _checks(call)
    assert (code, found["data folder"].level) == (4, "fail")
    assert "correct or unset it" in found["data folder"].text


def test_a_little_machine_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MIN_MEMORY_BYTES", 2**60)
    monkeypatch.setattr(doctor, "MIN_SHARED_MEMORY_BYTES", 2**60)
    monkeypatch.setattr(doctor, "MIN_DISK_BYTES", 2**60)
    found = {check.id: check for check in [*doctor.machine(), doctor.results_folder(Path("/"))]}
    for name in ("memory", "/dev/shm", "results"):
        assert found[name].verdict == "warning"
        assert "; " in found[name].text


def test_a_results_folder_that_cannot_be_written_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check = doctor.results_folder(tmp_path / "results")
    assert (check.verdict, check.exit_code) == ("failed", 5)


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
