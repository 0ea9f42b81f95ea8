from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas
import pytest
from pandas.testing import assert_frame_equal

import tuneoff
from builders.odd_folders import export_to
from tuneoff.errors import MissingPackageError, ResultsError, UnknownNameError
from tuneoff.measure.waste import POLICIES
from tuneoff.tell.frames import load as loading
from tuneoff.tell.frames.tables import CHARGED, TABLES, Row


@pytest.mark.parametrize("folder", ["results", "odd"])
def test_records_and_a_current_export_give_the_same_frames(folder: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(folder)
    records = tuneoff.load(path)
    tables = export_to(path)
    exported = tuneoff.load(str(path))
    assert (records.source, exported.source) == ("records", "export")
    for name in TABLES:
        frame = getattr(records, name)
        assert len(frame) > 0
        assert_frame_equal(frame, getattr(exported, name), check_exact=True)
        assert_frame_equal(frame, pandas.read_parquet(tables / f"{name}.parquet"), check_exact=True)


@pytest.mark.parametrize("has_export", [False, True])
def test_every_column_has_its_declared_type(odd: Path, has_export: bool) -> None:
    if has_export:
        export_to(odd)
    frames = tuneoff.load(odd)
    for name, columns in TABLES.items():
        frame = getattr(frames, name)
        assert {column: str(dtype) for column, dtype in frame.dtypes.items()} == {
            column: form.dtype for column, form in columns.items()
        }
        for column, form in columns.items():
            assert not form.always or not frame[column].isna().any(), (name, column)


def test_only_what_is_asked_for_is_read(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_to(results)
    frames = tuneoff.load(results)
    for table in TABLES:
        if table != "runs":
            (results / "export" / f"{table}.parquet").unlink()
    assert len(frames.runs) == 3
    assert frames.runs is frames.runs


def test_chosen_columns_come_in_the_order_asked_for(results: Path) -> None:
    wanted = ["value", "label", "seed"]
    for _ in range(2):
        frame = tuneoff.load(results).read("trials", wanted)
        assert list(frame) == wanted
        assert list(tuneoff.load(results).read("trials", ["seed", "seed"])) == ["seed"]
        assert tuneoff.load(results).read("trials", []).shape == (9, 0)
        assert_frame_equal(frame, tuneoff.load(results).trials[wanted], check_exact=True)
        export_to(results)


def test_energy_is_not_computed_for_columns_that_need_none(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def no_charges(*arguments: object) -> dict[str, Row]:
        asked.append(())
        return {}

    monkeypatch.setattr("tuneoff.tell.frames.export.trial_charges", no_charges)
    tuneoff.load(results).read("trials", ["label", "value", "cpu_seconds"])
    assert not asked
    tuneoff.load(results).read("trials", ["label", "busy_seconds"])
    assert len(asked) == 3
    assert {*CHARGED} == {name for name in TABLES["trials"] if "energy" in name or "co2e" in name or "cost" in name} | {
        "busy_seconds",
        *(f"waste_{policy}_seconds" for policy in POLICIES),
    }


def test_a_folder_that_is_none_and_a_damaged_record_are_one_line(results: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ResultsError, match=r"is not a results folder: matrix\.json cannot be read[^\n]*$"):
            tuneoff.load(path)
    next(results.glob("runs/*/*/end.json")).write_text("{")
    with pytest.raises(ResultsError, match=r"is damaged[^\n]*$"):
        _ = tuneoff.load(results).runs


def test_unknown_tables_and_columns_name_the_known_ones(results: Path) -> None:
    frames = tuneoff.load(results)
    with pytest.raises(UnknownNameError, match="no table named 'trails'; there are: runs, trials"):
        frames.read("trails")
    with pytest.raises(UnknownNameError, match="'trials' has no column 'loss'; it has: run_id"):
        frames.read("trials", ["value", "loss"])
    with pytest.raises(UnknownNameError, match="no column 'framework'"):
        frames.summary(by=["framework"])


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_a_missing_package_says_how_to_install_it(results: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setattr(loading, "missing_modules", lambda names: [name for name in names if name == package])
    with pytest.raises(MissingPackageError, match=rf"need {package}; run: pip install {package}"):
        tuneoff.load(results)


def test_importing_tuneoff_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import tuneoff; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in found if name.partition(".")[0] not in {*sys.stdlib_module_names}] == ["tuneoff"]


def test_all_executions_are_there_and_the_selected_ones_are_marked(odd: Path) -> None:
    frames = tuneoff.load(odd)
    runs = frames.runs
    assert [*zip(runs["seed"], runs["execution_id"], strict=True)] == [
        *((seed, "1") for seed in range(5)),
        (4, "2"),
        (7, "1"),
        (8, "1"),
    ]
    unselected = runs[~runs["is_selected"]]
    assert [*zip(unselected["seed"], unselected["execution_id"], strict=True)] == [(4, "1"), (7, "1")]
    assert runs[runs["warm_up"]]["seed"].tolist() == [7]
    trials = frames.trials
    assert trials.groupby("seed").size().to_dict() == {0: 3, 1: 3, 3: 3, 4: 6, 7: 3, 8: 3}
    assert trials[trials["is_selected"]].groupby("seed").size().to_dict() == {0: 3, 1: 3, 3: 3, 4: 3, 8: 3}
