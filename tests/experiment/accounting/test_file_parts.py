"""`power:`, `carbon:` and `prices:` of an experiment file: what they become, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from builders.present import present
from builders.refusals import refusal
from tuneoff.experiment.load import MatrixFile, load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.measure.power.metering import check_meters

LEAST: dict[str, Any] = {"workload": "curve", "adapters": ["plain"], "budget": {"trials": 2}}


def load(folder: Path, **parts: Any) -> MatrixFile:
    path = folder / "file.yaml"
    path.write_text(json.dumps({**LEAST, **parts}).replace("Infinity", ".inf"))  # JSON is YAML
    return load_matrix(path)


def price_file(path: Path, name: str = "ours") -> Path:
    path.write_text(f"name: {name}\nsource: the invoice\ndate: 2026-03\nusd_per_vcpu_hour: 0.05\n")
    return path


def test_a_path_belongs_to_the_file_that_gives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "base"
    base.mkdir()
    price_file(base / "prices.yaml", "of the base")
    (base / "grid.csv").write_text("time,g_per_kwh\n2026-05-01T00:00:00Z,100\n2026-05-01T01:00:00Z,300\n")
    carbon = {"series": "grid.csv"}
    (base / "base.yaml").write_text(json.dumps({**LEAST, "prices": "prices.yaml", "carbon": carbon, "power": "rapl"}))
    (tmp_path / "plain.yaml").write_text(json.dumps({"include": "base/base.yaml"}))
    (tmp_path / "top.yaml").write_text(
        json.dumps(
            {"include": "base/base.yaml", "carbon": {"g_per_kwh": 1}, "power": {"meter": "constant", "options": {"watts": 1}}}
        )
    )
    monkeypatch.chdir(tmp_path)
    file = load_matrix("top.yaml")
    assert present(file.accounting.prices).name == "of the base"
    assert present(file.accounting.intensity).values == (1.0,), "another intensity replaces the included one"
    assert file.power.meter == "constant"
    assert present(load_matrix("plain.yaml").accounting.intensity).values == (100.0, 300.0)


def test_paths_of_a_meter_begin_at_the_first_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    power = {"meter": "replay", "options": {"path": "a.csv"}}
    for where, content in {"base": {**LEAST, "power": power}, "here": {"include": "../base/file.yaml"}}.items():
        (tmp_path / where).mkdir()
        (tmp_path / where / "file.yaml").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    far = load_matrix("here/file.yaml").power
    assert (far.options, far.placed_options) == ({"path": "a.csv"}, {"path": "here/a.csv"})
    monkeypatch.chdir(tmp_path / "here")
    near = load_matrix("file.yaml").power
    assert near.placed_options == {"path": "a.csv"}
    assert near.to_json() == far.to_json(), "a plan is the same wherever it is made"


def test_they_are_not_in_the_identity_of_a_run_but_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_plugins.register(monkeypatch)
    space = {"rate": {"type": "float", "low": 0.1, "high": 1.0}}
    price_file(tmp_path / "ours.yaml")
    (tmp_path / "grid.csv").write_text("time,g_per_kwh\n2026-05-01T00:00:00Z,100\n2026-05-01T01:00:00Z,300\n")
    plain = make_plan(load(tmp_path, search_space=space))
    variants: list[dict[str, Any]] = [
        {"power": "one:Meter"},
        {"power": "none"},
        {"power": {"interval_seconds": 1}},
        {"carbon": {"zone": "ESP"}},
        {"carbon": "none"},
        {"carbon": {"series": "grid.csv"}},
        {"prices": "none"},
        {"prices": "ours.yaml"},
    ]
    for parts in variants:
        plan = make_plan(load(tmp_path, search_space=space, **parts))
        assert plan.plan_id == plain.plan_id
        assert plan.analysis_digest != plain.analysis_digest, parts
        again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
        assert (again.power, again.accounting, again.analysis_digest) == (plan.power, plan.accounting, plan.analysis_digest)
        assert "times" not in json.dumps(plan.analysis), "a series is frozen as its digest"
    first = make_plan(load(tmp_path, search_space=space, carbon={"series": "grid.csv"}))
    (tmp_path / "grid.csv").write_text("time,g_per_kwh\n2026-05-01T00:00:00Z,100\n2026-05-01T01:00:00Z,301\n")
    assert make_plan(load(tmp_path, search_space=space, carbon={"series": "grid.csv"})).analysis_digest != first.analysis_digest


def test_a_plan_refuses_a_meter_that_nobody_installed(tmp_path: Path) -> None:
    problem = "no power meter named 'rapel'; did you mean 'rapl'?; known: auto, codecarbon, "
    said = refusal(check_meters, load(tmp_path, workload="null", adapters=["serial"], power="rapel"))
    assert said.startswith(f"{tmp_path / 'file.yaml'}: power.meter: {problem}")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"power": ["rapl"]}, "power: must be a name or a mapping with `meter`, but got ['rapl']"),
        ({"power": {"meter": ""}}, "power.meter: must not be empty"),
        ({"power": {"watts": 3}}, "power: unknown key 'watts'"),
        ({"power": {"interval_seconds": 0}}, "power.interval_seconds: must be at least 0.02, but got 0"),
        ({"power": {"meter": "x", "options": {"a": [float("inf")]}}}, "power.options: option `a` must be a finite number"),
        ({"power": {"meter": 1}}, "power.meter: must be text, but got 1; put it in quotes if it is meant as text"),
        ({"carbon": "DEU"}, "carbon: must be a mapping with `zone`, `g_per_kwh` or `series`, or none, but got 'DEU'"),
        ({"carbon": {}}, "carbon: exactly one of `zone`, `g_per_kwh` and `series` must be given, but got none"),
        ({"carbon": {"zone": "DEU", "g_per_kwh": 3}}, "must be given, but got zone and g_per_kwh"),
        ({"carbon": {"zone": "DEU", "date": "2025"}}, "carbon: `source` and `date` of a zone are the table's"),
        ({"carbon": {"zone": "Germany"}}, "carbon: no zone 'Germany'; did you mean DEU (Germany)?"),
        ({"carbon": {"g_per_kwh": 1, "date": "2026-13"}}, "carbon.date: must be a year, a month or a day"),
        ({"carbon": {"series": "none.csv"}}, "carbon: none.csv: the file cannot be read"),
        ({"prices": None}, "prices: must be the path of a price file, or none, but got null"),
        ({"prices": "none.yaml"}, "prices: none.yaml: the file cannot be read"),
        ({"matrix": {"carbon.zone": ["DEU", "ESP"]}}, "matrix: 'carbon.zone' may not be varied"),
        ({"zip": [{"power.meter": ["a", "b"]}]}, "matrix: 'power.meter' may not be varied"),
    ],
)
def test_a_wrong_part_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Any, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(load, Path(), **parts)
    assert message in said
    assert said.startswith("file.yaml: ")
