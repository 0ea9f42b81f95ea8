from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders.event_logs import example_a, example_b
from tuneoff.errors import MissingPackageError, ResultsError
from tuneoff.measure.declared_experiment import with_declared
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.run_record import FlagRecord
from tuneoff.record.store import read_run, write_run
from tuneoff.tell.frames.columns import TABLES
from tuneoff.tell.frames.export import Format, export


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for number, (log, spec) in enumerate((example_a(), example_b())):
        run = with_declared(with_metrics(derive(log.pairs(), replace(spec, seed=number))))
        run = replace(run, execution_id=f"execution-{number}")
        folder = tmp_path / "results" / "runs" / run.run_id / run.execution_id
        folder.mkdir(parents=True)
        write_run(folder, run)
    return tmp_path / "results"


def read(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]
    if path.suffix == ".json":
        loaded: list[dict[str, object]] = json.loads(path.read_text())
        return loaded
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_every_format_has_every_table_with_every_row(results: Path, tmp_path: Path, format: Format) -> None:
    paths = export(results, tmp_path / "out", format)
    assert sorted((tmp_path / "out").iterdir()) == sorted(paths)
    tables = [read(path) for path in paths]
    assert all(list(row) == list(TABLES[path.stem]) for path, table in zip(paths, tables, strict=True) for row in table)
    runs, trials, epochs, metrics, steps, declared = tables
    assert [len(runs), len(trials), len(epochs), len(steps), len(declared)] == [2, 6, 20, 14, 28]
    assert {row["name"] for row in metrics} >= {"time.jct", "slots.idle", "quality.test"}
    assert {str(row["execution_id"]) for row in runs} == {"execution-0", "execution-1"}
    assert all(str(row["is_selected"]) == "True" for row in runs)
    assert all((row["value"] is None) == (row["reason_if_null"] is not None) for row in metrics)
    assert [row["value"] for row in metrics if row["name"] == "waste.post_goal.time"] == [None, None]
    assert [row["reason_if_null"] for row in metrics if row["name"] == "waste.post_goal.time"] == ["no goal", "no goal"]


def test_every_table_says_which_run_a_row_belongs_to(results: Path, tmp_path: Path) -> None:
    runs, *others = (read(path) for path in export(results, tmp_path / "out", "json"))
    keys = ("execution_id", "adapter", "sampler", "pruner", "seed", "warm_up", "is_selected")
    known = {tuple(run[key] for key in keys) for run in runs}
    for table in others:
        assert {tuple(row[key] for key in keys) for row in table} == known


def test_counts_are_integers_and_times_are_not(results: Path, tmp_path: Path) -> None:
    text = (export(results, tmp_path / "out", "csv")[3]).read_text()
    rows = {str(row["name"]): row["value"] for row in csv.DictReader(text.splitlines())}
    assert rows["trials.completed"] == "2"
    assert "." in rows["time.jct"]


def test_rows_are_in_the_order_of_the_plan(results: Path, tmp_path: Path) -> None:
    ids = [str(row["run_id"]) for row in read(export(results, tmp_path / "out", "json")[0])]
    for order in (ids, ids[::-1]):
        tables = [read(path) for path in export(results, tmp_path / "out", "json", order)]
        for table in tables:
            assert list(dict.fromkeys(row["run_id"] for row in table)) == order


def test_a_run_has_the_names_of_its_flags(results: Path, tmp_path: Path) -> None:
    path = sorted(results.glob("runs/*/*/run.json"))[0]
    run = read_run(path)
    flags = tuple(FlagRecord(name=name, text="x") for name in ("disturbed", "best_tied", "disturbed"))
    write_run(path.parent, replace(run, flags=flags))
    rows = read(export(results, tmp_path / "out", "json")[0])
    assert {row["run_id"]: row["flags"] for row in rows}[run.run_id] == "disturbed,best_tied"


FORMULAS = ("=HYPERLINK(1)", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "-", "=")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_in_csv_is_a_formula_to_a_spreadsheet(text: str, results: Path, tmp_path: Path) -> None:
    path = sorted(results.glob("runs/*/*/run.json"))[0]
    run = read_run(path)
    trials = tuple(replace(trial, cause=text) for trial in run.trials)
    write_run(path.parent, replace(run, status="failed", reason=text, trials=trials, charged="framework"))
    runs, attempts, *_ = (read(path) for path in export(results, tmp_path / "csv", "csv"))
    plain = read(export(results, tmp_path / "json", "json")[0])
    assert f"'{text}" in {row["reason"] for row in runs}
    assert f"'{text}" in {row["cause"] for row in attempts}
    assert text in {row["reason"] for row in plain}, "JSON is for programs: as it is"


def test_numbers_in_csv_stay_numbers(results: Path, tmp_path: Path) -> None:
    path = sorted(results.glob("runs/*/*/run.json"))[0]
    run = read_run(path)
    write_run(
        path.parent,
        replace(run, reason="-1.5e-3", trials=tuple(replace(trial, value=-0.25, value_epoch=1) for trial in run.trials)),
    )
    runs, trials, *_ = (read(path) for path in export(results, tmp_path / "csv", "csv"))
    assert {row["reason"] for row in runs} >= {"-1.5e-3"}
    assert "-0.25" in {row["value"] for row in trials}


def test_a_workload_named_null_is_read_where_pandas_is_told_that_only_an_empty_field_is_missing(
    results: Path, tmp_path: Path
) -> None:
    pandas = pytest.importorskip("pandas")
    path = sorted(results.glob("runs/*/*/run.json"))[0]
    run = read_run(path)
    experiment = {**run.specification["experiment"], "workload": {"name": "null", "target": "x:Null"}}
    write_run(path.parent, replace(run, specification={**run.specification, "experiment": experiment}))
    runs, *_ = export(results, tmp_path / "csv", "csv")
    assert "null" in set(pandas.read_csv(runs, keep_default_na=False, na_values=[""])["workload"])
    assert "null" not in set(pandas.read_csv(runs)["workload"]), "control: by default the workload `null` is lost"


def test_an_export_of_no_runs_is_empty_tables(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert [read(path) for path in export(tmp_path / "results", tmp_path / "out", "json")] == [[]] * 6


def test_a_corrupt_record_stops_the_export_and_leaves_nothing(results: Path, tmp_path: Path) -> None:
    sorted(results.glob("runs/*/*/run.json"))[-1].write_text("{")
    with pytest.raises(ResultsError, match="is no run record"):
        export(results, tmp_path / "out")
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_a_destination_that_cannot_be_written_is_one_line(results: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        export(results, tmp_path / "file")


def test_parquet_without_its_package_says_how_to_install_it(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingPackageError, match=r"pip install pyarrow"):
        export(results, tmp_path / "out", "parquet")
