"""Negative controls: defects of the plan, runs that are missing, and changed tables are named."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from results_folders import Results, edit, execution, lines
from tuneoff.experiment.spec import RunSpec
from tuneoff.records.folder import derive_folder
from tuneoff.records.store import read_run, write_run
from tuneoff.report.export import export
from tuneoff.verify.results import verify


def test_a_removed_run_is_named_by_what_was_planned(results: Path) -> None:
    folder = execution(results, "serial")
    shutil.rmtree(folder.parent)
    (line,) = lines(results)
    assert line.startswith(f"runs/{folder.parent.name}: planned (serial random seed 0), but it has no execution, and later runs")


def test_the_last_run_removed_is_named_where_nothing_was_interrupted(results: Path) -> None:
    folder = execution(results, "optuna")
    shutil.rmtree(folder.parent)
    (line,) = lines(results)
    assert line.startswith(f"runs/{folder.parent.name}: planned (optuna random seed 0), but it has no execution, and nothing was")


def test_a_run_that_was_never_planned_is_named(results: Path, sound: Results) -> None:
    spec: RunSpec = replace(sound.plan.runs[0].spec, seed=5)
    folder = execution(results, "serial")
    moved = results / "runs" / spec.run_id / folder.name
    shutil.copytree(folder, moved)
    derived = derive_folder(moved, spec, versions=read_run(folder).versions, environment=read_run(folder).environment)
    write_run(moved, derived)
    (moved / "spec.json").unlink()
    assert lines(results) == [f"runs/{spec.run_id}/run1-abc: its run is not in the plan"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"seed": 0', '"seed": 4', "matrix.json: runs[0].run_id: "),
        ('"metric": "time.jct"', '"metric": "quality.test"', "matrix.json: analysis_digest: stored "),
        ('"plan_id": "', '"plan_id": "0', "matrix.json: plan_id: stored "),
        ('"trials": 6', '"trials": 7', "matrix.json: totals.trials: stored 7, recomputed 6"),
        ('"format_version": 1', '"format_version": 99', "matrix.json: has format version 99, but this tuneoff reads version 1"),
        ('"name": "example"', '"name": "example", "x": 1', "matrix.json: x: stored 1, recomputed nothing"),
        ('"format_version": 1,', "", "matrix.json: has format version None"),
        ('"runs": [', '"runs": {', "matrix.json: is damaged"),
        ('"block": 0', '"block": 0, "extra": 1', "extra"),
    ],
)
def test_a_defect_of_the_plan_is_named(results: Path, old: str, new: str, named: str) -> None:
    edit(results / "matrix.json", lambda text: text.replace(old, new, 1))
    found = lines(results)
    assert any(named in line for line in found), found


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_changed_table_is_named(results: Path, format: Literal["csv", "json"]) -> None:
    run_ids = [run["run_id"] for run in json.loads((results / "matrix.json").read_text())["runs"]]
    export(results, results / "export", format, run_ids)
    assert lines(results) == []
    edit(results / "export" / f"metrics.{format}", lambda text: text.replace("176000.0", "175000.0", 1))
    (line,) = lines(results)
    assert line.startswith(f"export/metrics.{format}: row 1 (run1-abc, time.jct) value: stored ")
    assert "175000.0" in line
    assert "176000.0" in line


def test_a_row_removed_from_a_table_is_named(results: Path) -> None:
    export(results, results / "export", "csv")
    edit(results / "export" / "trials.csv", lambda text: "".join(text.splitlines(keepends=True)[:-1]))
    (line,) = lines(results)
    assert line.startswith("export/trials.csv: row 6 (run1-abc, 3")
    assert line.endswith("is missing")


def test_tables_of_a_damaged_record_are_not_compared(results: Path) -> None:
    export(results, results / "export", "csv")
    edit(execution(results, "serial") / "run.json", lambda text: text[:5000])
    found = verify(results)
    assert len(found.problems) == 1
    assert "export/*.csv could not be compared" in found.notes[0]
