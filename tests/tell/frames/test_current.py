"""An export is used where it is current, and only there."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tuneoff
from builders.odd_folders import export_to
from builders.stored import write_run
from tuneoff.measure.stored import read_run
from tuneoff.tell.frames.tables import TABLES, Column

AN_HOUR_NS = 3_600_000_000_000


def record(results: Path) -> Path:
    return sorted(results.glob("runs/*/*/run.json"))[0]


def change_record(results: Path) -> None:
    path = record(results)
    write_run(path.parent, replace(read_run(path.parent), reason="x", status="failed"))


def add_execution(results: Path) -> None:
    folder = record(results).parent
    (folder.parent / "later").mkdir()
    write_run(folder.parent / "later", replace(read_run(folder), execution_id="later"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "record changed": change_record,
    "execution added": add_execution,
    "execution removed": lambda results: shutil.rmtree(record(results).parent),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_export_that_is_stale_is_not_used_and_a_warning_says_so(
    results: Path, caplog: pytest.LogCaptureFixture, change: Callable[[Path], object]
) -> None:
    export_to(results)
    assert tuneoff.load(results).source == "export"
    assert caplog.records == []
    change(results)
    frames = tuneoff.load(results)
    assert frames.source == "records"
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert f"{results / 'export'} is not current" in warning.getMessage()
    assert f"tuneoff export {results} --format parquet" in warning.getMessage()


def test_an_export_of_another_tuneoff_is_not_used(
    results: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trial is charged is computed: with the same files and columns, by other rules."""
    export_to(results)
    monkeypatch.setattr(tuneoff, "__version__", "99.0")
    assert tuneoff.load(results).source == "records"
    assert "is not current" in caplog.text


def test_what_a_stale_export_lacks_is_in_the_frames(results: Path) -> None:
    """Control: the tables themselves still have the old rows."""
    import pandas

    tables = export_to(results)
    change_record(results)
    assert "failed" not in set(pandas.read_parquet(tables / "runs.parquet")["status"])
    assert "failed" in set(tuneoff.load(results).runs["status"])
    export_to(results)
    assert "failed" in set(tuneoff.load(results).runs["status"])
    assert tuneoff.load(results).source == "export"


def test_samples_that_cannot_be_read_leave_an_export_with_a_warning(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = record(results).parent / "power.jsonl"
    path.write_bytes(b"\xff\n")
    export_to(results)
    assert "trials without energy and CO2e" in caplog.text
    assert tuneoff.load(results).source == "export"


def test_an_export_in_csv_is_none_to_load(results: Path, caplog: pytest.LogCaptureFixture) -> None:
    export_to(results, "csv")
    assert tuneoff.load(results).source == "records"
    assert caplog.records == []


def test_a_copy_of_the_folder_keeps_its_export_whatever_the_times_of_its_files(results: Path, tmp_path: Path) -> None:
    export_to(results)
    assert tuneoff.load(shutil.copytree(results, tmp_path / "copy")).source == "export"
    bare = Path(shutil.copytree(results, tmp_path / "bare", copy_function=shutil.copyfile))
    os.utime(record(bare), ns=(AN_HOUR_NS, AN_HOUR_NS))
    assert tuneoff.load(bare).source == "export"


def test_a_table_of_another_export_is_not_used(results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = shutil.copytree(export_to(results), tmp_path / "old")
    change_record(results)
    export_to(results)
    shutil.copy(old / "steps.parquet", results / "export" / "steps.parquet")
    frames = tuneoff.load(results)
    assert "failed" in set(frames.runs["status"])
    assert len(frames.steps) > 0
    assert "steps.parquet cannot be used" in caplog.text
    assert len(frames.trials) == 9
    assert "trials.parquet" not in caplog.text


@pytest.mark.parametrize("content", [b"", b"PAR1", None])
def test_a_damaged_table_is_not_used(results: Path, caplog: pytest.LogCaptureFixture, content: bytes | None) -> None:
    path = export_to(results) / "trials.parquet"
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    assert len(tuneoff.load(results).trials) == 9
    assert "trials.parquet cannot be used" in caplog.text


@pytest.mark.parametrize("kind", ["fewer", "of another type"])
def test_a_table_with_the_columns_of_another_version_is_not_used(
    results: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    columns = {name: column for name, column in TABLES["runs"].items() if name != "flags"}
    if kind != "fewer":
        columns = {**TABLES["runs"], "seed": Column("number", "", always=True)}
    with monkeypatch.context() as patch:
        patch.setitem(TABLES, "runs", columns)
        export_to(results)
        assert list(tuneoff.load(results).runs) == list(columns)
        assert not caplog.text
    runs = tuneoff.load(results).runs
    assert "is not current" in caplog.text
    assert (list(runs), str(runs["seed"].dtype)) == (list(TABLES["runs"]), "int64")
