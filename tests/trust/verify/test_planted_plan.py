"""Negative controls: defects of the plan, runs that are missing, and changed tables are named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from builders.odd_folders import export_to
from builders.results_folders import Results, edit, execution, lines
from builders.stored import derive_again, write_run
from builders.worked_examples import accounting_a
from tuneoff.experiment.accounting.declared import frozen
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.measure.stored import read_run
from tuneoff.trust.verify.results import verify


def test_a_run_that_was_never_planned_is_named(results: Path, sound: Results) -> None:
    spec: RunSpec = replace(sound.plan.runs[0].spec, seed=5)
    folder = execution(results, "serial")
    moved = results / "runs" / spec.run_id / folder.name
    shutil.copytree(folder, moved)
    stored = {"execution_id": folder.name, "run_id": spec.run_id, "run": run_spec_to_json(spec)}
    (moved / "spec.json").write_text(json.dumps(stored))
    derive_again(moved)
    assert lines(results) == [f"runs/{spec.run_id}/run1-abc: its run is not in the plan"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"metric": "time.jct"', '"metric": "quality.test"', "matrix.json: analysis_digest: stored "),
        ('"trials": 6', '"trials": 7', "matrix.json: totals.trials: stored 7, recomputed 6"),
        ('"format_version": 4', '"format_version": 99', "matrix.json: has format version 99, but this tuneoff reads version 4"),
        ('"name": "example"', '"name": "example", "x": 1', "matrix.json: x: stored 1, recomputed nothing"),
        ('"format_version": 4,', "", "matrix.json: has format version None"),
        ('"runs": [', '"runs": {', "matrix.json: is damaged"),
        ('"block": 0', '"block": 0, "extra": 1', "extra"),
    ],
)
def test_a_defect_of_the_plan_is_named(results: Path, old: str, new: str, named: str) -> None:
    edit(results / "matrix.json", lambda text: text.replace(old, new, 1))
    found = lines(results)
    assert any(named in line for line in found), found


def test_a_folder_of_an_earlier_format_is_one_line(results: Path) -> None:
    edit(results / "matrix.json", lambda text: text.replace('"format_version": 4', '"format_version": 3', 1))
    for path in results.glob("runs/*/*/end.json"):
        path.unlink()
    (line,) = lines(results)
    assert line.startswith("matrix.json: has format version 3, but this tuneoff reads version 4; use tuneoff as of commit ")


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_changed_table_is_named(results: Path, format: Literal["csv", "json"]) -> None:
    tables = export_to(results, format)
    export_to(results, "json" if format == "csv" else "csv")
    assert lines(results) == []
    edit(tables / f"metrics.{format}", lambda text: text.replace("176000.0", "175000.0", 1))
    assert lines(results) == [f"export/metrics.{format}: is not what the records give; export again"]


@pytest.mark.usefixtures("tables")
def test_tables_are_compared_where_a_stored_record_is_damaged(results: Path) -> None:
    edit(execution(results, "serial") / "run.json", lambda text: text[:5000])
    found = verify(results)
    assert found.is_verified
    assert found.notes == []


def test_tables_of_other_executions_are_a_note(results: Path) -> None:
    """As of those before an execution was put back."""
    first = execution(results, "serial")
    shutil.move(first.parent, results / "away")
    export_to(results, "csv")
    shutil.move(results / "away", first.parent)
    verification = verify(results)
    assert verification.problems == []
    assert verification.notes == ["export/*.csv are of other executions, or of another tuneoff: export again"]


@pytest.mark.usefixtures("tables")
def test_a_changed_record_is_named_once_and_not_by_the_tables_made_before(results: Path) -> None:
    folder = execution(results, "serial")
    edit(folder / "run.json", lambda text: text.replace('"time.jct": {"value":176000.0', '"time.jct": {"value":175000.0'))
    found = verify(results)
    assert [problem.what for problem in found.problems] == ["metrics.time.jct.value"]
    assert found.notes == [f"export/*.csv were not compared: executions differ themselves: {folder.parent.name}/run1-abc"]


def frozen_plan(results: Path) -> dict[str, Any]:
    """Write a plan that froze what example A is charged, and return it; B is left out, as it is charged otherwise."""
    shutil.rmtree(execution(results, "optuna").parent)
    data = json.loads((results / "matrix.json").read_text())
    plan = Plan.from_json(data)
    accounting = accounting_a()
    analysis = {"metric": "time.jct", "seeds": [0], "power": plan.power.to_json(), **frozen(accounting)}
    changed = replace(plan, runs=plan.runs[:1], accounting=accounting, analysis=analysis)
    (results / "matrix.json").write_text(json.dumps(changed.to_json()))
    folder = execution(results, "serial")
    record = read_run(folder)
    environment = {**record.environment, "analysis_digest": changed.analysis_digest}
    write_run(folder, replace(record, environment=environment))
    assert lines(results) == []
    as_read: dict[str, Any] = json.loads(json.dumps(changed.to_json()))
    return as_read


Change = Callable[[dict[str, Any]], object]
FROZEN: dict[str, tuple[Change, str]] = {
    "price": (
        lambda plan: plan["accounting"]["prices"].update(usd_per_vcpu_hour=9.0),
        "matrix.json: accounting: prices.usd_per_vcpu_hour: is 9.0, but its analysis froze 0.1",
    ),
    "intensity": (
        lambda plan: plan["accounting"]["intensity"].update(values=[1.0, 2.0]),
        "matrix.json: accounting: carbon.sha256: is ",
    ),
    "meter": (
        lambda plan: plan["power"].update(meter="rapl"),
        'matrix.json: power.meter: is "rapl", but its analysis froze "auto"',
    ),
    "block": (lambda plan: plan["runs"][0].update(block=3), "matrix.json: runs[#1].block: stored 3, its seed has 0"),
    "same_as": (lambda plan: plan["runs"][0].update(same_as="feed"), "matrix.json: runs[#1].same_as: feed stands for it, but"),
    "label": (
        lambda plan: plan["runs"][0].update(label=["x"]),
        "matrix.json: a plan is damaged: Refused: runs.0.label: must be text, but got ['x']",
    ),
    "specification": (
        lambda plan: plan["runs"].append({"spec": {**plan["runs"][0]["spec"], "seed": "x"}}),
        "matrix.json: runs[#2]: a run's specification is damaged: Refused: seed: must be an integer, but got 'x'",
    ),
    "nan": (lambda plan: plan["analysis"].update(margin=float("nan")), "matrix.json: is damaged: NaN is not a JSON value"),
    "infinity": (lambda plan: plan["analysis"].update(margin="1e999"), "matrix.json: only finite JSON values"),
}


@pytest.mark.parametrize("what", FROZEN)
def test_what_the_plan_froze_is_held_to_it(results: Path, what: str) -> None:
    plan = frozen_plan(results)
    change, named = FROZEN[what]
    change(plan)
    (results / "matrix.json").write_text(json.dumps(plan).replace('"1e999"', "1e999"))
    found = lines(results)
    assert any(line.startswith(named) for line in found), found


def test_a_run_that_was_charged_otherwise_than_planned_is_named(results: Path) -> None:
    frozen_plan(results)
    folder = execution(results, "serial")
    edit(folder / "accounting.json", lambda text: re.sub(r'("usd_per_vcpu_hour": )[0-9.]+', r"\g<1>0.2", text))
    derive_again(folder)
    (line,) = lines(results)
    assert line.endswith("accounting.json: prices.usd_per_vcpu_hour is 0.2, the plan has 0.1")


@pytest.mark.parametrize("content", ["[" * 200_000, '{"format_version":1,"runs":' + "[" * 100_000 + "]" * 100_000 + "}"])
def test_a_plan_that_is_nested_too_deeply_is_named(results: Path, content: str) -> None:
    (results / "matrix.json").write_text(content)
    assert lines(results) == ["matrix.json: is damaged: is nested too deeply to be read"]
