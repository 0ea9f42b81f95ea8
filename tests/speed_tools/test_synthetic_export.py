"""The export that loading is timed on is one that is used, and its records are those of a results folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest

import tuneoff
import tuneoff.tell.frames.load
from benchmarks.speed.loading_probe import ONCE, REPEATED, SUMMARIZED, main
from benchmarks.speed.synthetic_export import write_export
from benchmarks.speed.synthetic_results import write_results
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import TrialState
from tuneoff.tell.frames.tables import TABLES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an export that all read."""
    path = tmp_path_factory.mktemp("export") / "results"
    write_export(path, runs=13, trials=30)
    return path


def test_a_synthetic_export_is_current_and_has_every_column(folder: Path) -> None:
    frames = tuneoff.load(folder)
    assert frames.source == "export"
    trials = frames.trials
    assert (len(trials), len(list(read_runs(folder)))) == (13 * 30, 13)
    assert {name: str(dtype) for name, dtype in trials.dtypes.items()} == {
        name: column.dtype for name, column in TABLES["trials"].items()
    }
    assert set(trials["state"]) <= {*get_args(TrialState)}
    assert trials["digest"].nunique() == len(trials)
    assert frames.summary()["trials"].to_dict()[("serial", "random")] == 2 * 30
    assert len(frames.summary()) == 12


@pytest.mark.parametrize("what", REPEATED)
def test_the_probe_loads_it(folder: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(what, folder, 13 * 30)
    assert '"seconds"' in capsys.readouterr().out
    with pytest.raises(SystemExit, match="391 trials were written, but 390 were read"):
        main(what, folder, 391)


def test_the_probe_refuses_an_export_that_is_not_used(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "results")
    shutil.rmtree(min((tmp_path / "results" / "runs").iterdir()))
    with pytest.raises(SystemExit, match="summary must read the export, but it reads the records"):
        main("summary", tmp_path / "results", 390)


@pytest.mark.parametrize("what", ONCE)
def test_the_probe_loads_records(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(tmp_path / "results", runs=2, trials=4, epochs=1)
    main(what, tmp_path / "results", 8)
    assert '"peak_bytes"' in capsys.readouterr().out


def test_both_sides_read_the_same_columns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    read = tuneoff.tell.frames.load.Frames.read

    def noting(self: tuneoff.tell.frames.load.Frames, table: str, columns: list[str]) -> object:
        asked.append(columns)
        return read(self, table, columns)

    monkeypatch.setattr(tuneoff.tell.frames.load.Frames, "read", noting)
    tuneoff.load(folder).summary()
    assert asked == [SUMMARIZED]
