"""Exports: formats, texts that are formulas, errors, and what the trials of the worked examples are charged."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from builders.results_folders import write_examples
from builders.stored import write_run
from builders.worked_examples import write_example
from tuneoff.errors import MissingPackageError, ResultsError
from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices, write_accounting
from tuneoff.measure.derived import derive_folder
from tuneoff.measure.spans import PARTS
from tuneoff.measure.stored import read_run
from tuneoff.record.run_record import FlagRecord
from tuneoff.tell.frames.export import Format, export
from tuneoff.tell.frames.tables import TABLES, trial_rows

Rows = list[dict[str, Any]]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_examples(tmp_path / "results").path


def read(path: Path) -> Rows:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]
    if path.suffix == ".json":
        loaded: Rows = json.loads(path.read_text())
        return loaded
    return list(pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist())


def first_record(results: Path) -> Path:
    return sorted(results.glob("runs/*/*/run.json"))[0].parent


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_every_format_has_every_table_with_every_row(results: Path, tmp_path: Path, format: Format) -> None:
    paths = export(results, tmp_path / "out", format)
    assert sorted(path for path in (tmp_path / "out").iterdir() if path.name != ".keys") == sorted(paths)
    tables = {path.stem: read(path) for path in paths}
    assert all(list(row) == list(TABLES[name]) for name, table in tables.items() for row in table)
    assert [len(tables[name]) for name in ("runs", "trials", "epochs", "steps", "declared")] == [2, 6, 20, 14, 28]
    keys = ("execution_id", "adapter", "sampler", "pruner", "seed", "warm_up", "is_selected")
    known = {tuple(run[key] for key in keys) for run in tables["runs"]}
    assert all({tuple(row[key] for key in keys) for row in table} == known for table in tables.values())


def test_rows_are_in_the_order_of_the_plan(results: Path, tmp_path: Path) -> None:
    ids = [str(row["run_id"]) for row in read(export(results, tmp_path / "out", "json")[0])]
    for order in (ids, ids[::-1]):
        for table in map(read, export(results, tmp_path / "out", "json", order)):
            assert list(dict.fromkeys(row["run_id"] for row in table)) == order


def test_no_text_in_csv_is_a_formula_to_a_spreadsheet(results: Path, tmp_path: Path) -> None:
    formulas = ("=HYPERLINK(1)", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "-", "=")
    run = read_run(first_record(results))
    trials = (*run.trials, *(replace(run.trials[0], trial=f"t{number}", cause=text) for number, text in enumerate(formulas)))
    write_run(first_record(results), replace(run, status="failed", reason=formulas[0], trials=trials, charged="framework"))
    runs, attempts, *_ = (read(path) for path in export(results, tmp_path / "csv", "csv"))
    assert f"'{formulas[0]}" in {row["reason"] for row in runs}
    assert {f"'{text}" for text in formulas} <= {row["cause"] for row in attempts}
    plain = read(export(results, tmp_path / "json", "json")[1])
    assert {*formulas} <= {row["cause"] for row in plain}, "JSON is for programs: as it is"


def test_numbers_in_csv_stay_numbers_and_flags_are_names(results: Path, tmp_path: Path) -> None:
    run = read_run(first_record(results))
    trials = tuple(replace(trial, value=-0.25, value_epoch=1) for trial in run.trials)
    flags = tuple(FlagRecord(name=name, text="x") for name in ("disturbed", "best_tied", "disturbed"))
    write_run(first_record(results), replace(run, reason="-1.5e-3", trials=trials, flags=flags))
    runs, attempts, _, metrics, *_ = (read(path) for path in export(results, tmp_path / "csv", "csv"))
    assert {row["reason"] for row in runs} >= {"-1.5e-3"}
    assert {row["flags"] for row in runs} >= {"disturbed,best_tied"}
    assert "-0.25" in {row["value"] for row in attempts}
    values = {row["name"]: row["value"] for row in metrics}
    assert values["trials.completed"] == "2"
    assert "." in values["time.jct"]


def test_an_export_of_no_runs_is_empty_tables_and_one_that_fails_leaves_nothing(results: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert [read(path) for path in export(tmp_path / "empty", tmp_path / "out", "json")] == [[]] * 6
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        export(results, tmp_path / "file")
    (first_record(results) / "end.json").write_text("{")
    with pytest.raises(ResultsError, match="is damaged"):
        export(results, tmp_path / "other")
    assert not list(tmp_path.glob("other/*"))


def test_parquet_without_its_package_says_how_to_install_it(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingPackageError, match=r"pip install pyarrow"):
        export(results, tmp_path / "out", "parquet")


# --- what trials and steps are charged ---


def tables(
    tmp_path: Path, name: Literal["A", "B"], damage: str | None = None, accounting: Accounting | None = None
) -> dict[str, Rows]:
    """Return the tables of a results folder with one example; `damage`: a file of it that is cut; `accounting`: its own."""
    example = tmp_path / "results" / "runs" / "example"
    spec = write_example(example, name)
    if accounting is not None:
        write_accounting(example, accounting)
    record = derive_folder(example, spec).record
    folder = example.with_name(record.run_id) / record.execution_id
    folder.parent.mkdir()
    write_run(example.rename(folder), record)
    if damage is not None:
        (folder / damage).write_text("{\n")
    return {path.stem: read(path) for path in export(tmp_path / "results", tmp_path / "out", "json")}


def column(rows: Rows, name: str) -> list[Any]:
    return [row[name] for row in rows]


def on_own_premises(usd_per_kwh: float, g_per_kwh: float) -> Accounting:
    own = Prices(name="own", source="bill", date="2026-05", premises="own", usd_per_kwh=usd_per_kwh)
    return Accounting(prices=own, intensity=Intensity(kind="constant", values=(g_per_kwh,)))


def test_the_trials_of_example_b_sum_to_its_metrics(tmp_path: Path) -> None:
    found = tables(tmp_path, "B")
    metrics = {row["name"]: row["value"] for row in found["metrics"]}
    assert column(found["trials"], "energy_joules") == pytest.approx([430, 495, 265])
    assert sum(column(found["trials"], "energy_joules")) == pytest.approx(metrics["energy.trial"] * 3 * 3.6e6)
    assert {(row["energy_kind"], row["co2e_g"], row["co2e_kind"]) for row in found["trials"]} == {("estimated", None, None)}
    assert sum(column(found["trials"], "waste_default_seconds")) * 1e3 == pytest.approx(metrics["waste.default.time"])
    declared = {row["symbol"]: row for row in found["declared"]}
    assert (json.loads(declared["wn"]["declared"]), declared["wn"]["agrees"], declared["pS"]["agrees"]) == (2, True, None)


@pytest.mark.parametrize("name", ["A", "B"])
def test_the_steps_sum_to_the_job(tmp_path: Path, name: Literal["A", "B"]) -> None:
    found = tables(tmp_path, name)
    metrics = {row["name"]: row["value"] for row in found["metrics"]}
    assert column(found["steps"], "step") == list(PARTS)
    sums = {"milliseconds": "time.jct", "energy_joules": "energy.job", "cost_usd": "cost.job"}
    for of_step, of_job in (sums | ({"co2e_g": "carbon.job"} if name == "A" else {})).items():
        assert sum(column(found["steps"], of_step)) == pytest.approx(metrics[of_job])


@pytest.mark.parametrize("damage", ["power.jsonl", "accounting.json"])
def test_a_damaged_file_leaves_the_other_columns(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    trials = tables(tmp_path, "B", damage)["trials"]
    assert column(trials, "busy_seconds") == pytest.approx([18, 21, 11])
    has_energy, has_cost = damage != "power.jsonl", damage != "accounting.json"
    for name, is_there in (("energy", has_energy), ("cost", has_cost)):
        amounts = column(trials, {"energy": "energy_joules", "cost": "cost_usd"}[name])
        assert {value is not None for value in (*amounts, *column(trials, f"{name}_kind"))} == {is_there}
    assert damage in caplog.text


def test_on_own_premises_what_a_modelled_trial_costs_is_estimated_and_what_overflows_is_null(tmp_path: Path) -> None:
    found = tables(tmp_path, "B", accounting=on_own_premises(usd_per_kwh=0.3, g_per_kwh=300.0))
    kinds = {(row["co2e_kind"], row["cost_kind"]) for row in (*found["trials"], *found["steps"])}
    assert kinds == {("estimated", "estimated")}
    assert sum(column(found["trials"], "cost_usd")) == pytest.approx(1190 / 3.6e6 * 0.3)
    found = tables(tmp_path / "b", "B", accounting=on_own_premises(usd_per_kwh=1e9, g_per_kwh=1e308))
    assert column(found["trials"], "co2e_g") == [None] * 3
    assert column(found["trials"], "energy_joules") == pytest.approx([430, 495, 265])
    metrics = {row["name"]: row for row in found["metrics"]}
    assert metrics["carbon.job"]["reason_if_null"] == "it is inf: the values that it is computed from are too large"


@pytest.mark.parametrize(("first", "expected"), [(10**9, [1.0, 3.0, 1.0]), (None, [None] * 3)])
def test_a_trial_has_the_cpu_time_of_all_its_attempts_or_none(tmp_path: Path, first: int | None, expected: Rows) -> None:
    """The first attempt of each trial used `first` ns, and a further one 2 s."""
    run = derive_folder(tmp_path, write_example(tmp_path, "B")).record
    trials = tuple(
        replace(
            trial,
            attempts=tuple(
                msgspec.structs.replace(one, cpu_ns=2 * 10**9 if index else first) for index, one in enumerate(trial.attempts)
            ),
        )
        for trial in run.trials
    )
    assert column(list(trial_rows(replace(run, trials=trials), True, {})), "cpu_seconds") == expected
